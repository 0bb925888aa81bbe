/* cli/replay_event.h - reads a line of a file of events.
 *
 * Posts, deletions, follows, unfollows and changes of users as in docs/events.md. Optional members
 * of the wrong type count as absent; ids may be strings or integers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/failure.h"
#include "base/slice.h"
#include "src/social/posts.h"

enum replay_kind {
    REPLAY_POST,
    REPLAY_DELETE,
    REPLAY_FOLLOW,
    REPLAY_UNFOLLOW,
    REPLAY_USER,
    REPLAY_KIND_COUNT
};

/* A user as named in the file. */
struct replay_user {
    struct sl_slice id;    /* absent: none */
    struct sl_slice login; /* absent: none */
    struct sl_slice name;
};

enum { REPLAY_NUMBER_SIZE = 24, REPLAY_NUMBERS = 10 };

struct replay_event {
    enum replay_kind kind;
    struct replay_user user;   /* who posts, deletes, follows, or was changed */
    struct replay_user target; /* who is followed */
    bool is_new_user;          /* for a change of a user: it was created */
    struct sl_slice post_id;   /* of a post or deletion; absent: the post has none */
    struct sl_post post;       /* its references use the ids of the file */

    /* owns the bytes of the slices above */
    json_t *json;
    char *media;
    struct sl_slice urls[SL_POST_URLS_MAX + 1];
    char numbers[REPLAY_NUMBERS][REPLAY_NUMBER_SIZE]; /* ids that were integers */
    size_t numbers_used;
};

/* 0; -EINVAL: *reterr says what is wrong with the line; -ENOMEM. *ret_event must not be moved. */
int replay_event_read(struct sl_slice line, struct replay_event *ret_event, struct failure *reterr);
void replay_event_done(struct replay_event *event);
