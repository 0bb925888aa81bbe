/* gateway/api/list.h - inside the API: a page of users or posts, {"items":[...],"next":"..."}.
 *
 * The shard that has the list answers with its rows; those that live in other shards are asked for
 * then, all at once. `next` is the position of the last row and there whenever a row is: only the
 * page past the end is empty, and has none. A page whose rows are all gone is read over. Where
 * Redis ends, the archive is read on. With a cache rows come bare, which the cache makes whole;
 * those that it cannot are asked for as those of other shards are. */
#pragma once

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

struct api_request;
struct sl_post_row;

/* What a bare row has. */
struct api_list_bare {
    uint64_t author;    /* of a post */
    uint64_t counts[3]; /* likes, comments; followers, following, posts */
    uint64_t version;   /* of a user */
    size_t login_at, login_size, name_at, name_size; /* in api_list.texts; a user has no login */
};

struct api_list_row {
    uint64_t id;
    size_t offset, size; /* of its JSON; 0: not known (yet), or there is nothing to be seen */
    bool is_bare;        /* the cache may have the rest of it */
    struct api_list_bare bare;
};

struct api_list {
    struct api_list_row *rows;
    size_t count;
    size_t *absent; /* indices of the rows that other shards are asked for */
    size_t absent_count;
    uint64_t next;      /* position of the last row; 0: nothing is behind it */
    bool tells_missing; /* the rows were asked for by their ids */
    bool only_liked;    /* rows that the caller does not like are not shown */
    struct buffer json, texts;
    int (*then)(struct api_request *request, const redisReply *reply); /* when no row lacks */
};

void api_list_done(struct api_list *list);

/* A page that has been put together elsewhere: posts, newest first, in one form or another. */
typedef const struct sl_post_row *(*api_list_row_fn)(const void *context, size_t i);
int api_list_answer_posts(struct api_request *request, const void *context, size_t count,
                          api_list_row_fn row_at);

/* Users by their ids, which are there, in this order; `next` as above. */
int api_list_answer_users(struct api_request *request, const uint64_t *ids, size_t count,
                          uint64_t next);

/* The same of posts. */
int api_list_answer_page(struct api_request *request, const uint64_t *ids, size_t count,
                         uint64_t next);
/* Posts by their ids, those of them that the caller likes. */
int api_list_answer_liked(struct api_request *request, const uint64_t *ids, size_t count,
                          uint64_t next);

/* What request->ids are, in this order, {"items":[...],"missing":["ID",...]}: those that there are
 * not, or that the reader may not see, are told. */
int api_list_asked_users(struct api_request *request);
int api_list_asked_posts(struct api_request *request);

/* Steps: the reply is that to a builder of a list of users, or of posts. */
int api_list_on_users(struct api_request *request, const redisReply *reply);
int api_list_on_posts(struct api_request *request, const redisReply *reply);
int api_list_on_profile(struct api_request *request, const redisReply *reply);
