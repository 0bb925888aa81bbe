/* src/home/home_merge.h - merges the newest posts of many authors in many shards by id.
 *
 * Authors are asked in groups, with one script call for each group (home_feed.lua). The answer
 * contains the group's newest posts, and the id above which these are complete. As long as that id
 * is above what is still needed, the group is asked for more. All calls of a round are sent
 * together:
 *
 *     merge.before = ..., and the other public fields
 *     sl_home_merge_add(&merge, authors, count, UINT64_MAX, &failure)
 *     while (sl_home_merge_plan(&merge))
 *         for each due source: sl_home_merge_call(), and sl_home_merge_take() with the reply
 *
 * Used by reads (home_read.c) and by the task that fills timelines (home_task.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/failure.h"
#include "src/call/call.h"
#include "src/model/database.h"
#include "src/social/post_rows.h"

struct redisReply;

struct sl_home_row {
    struct sl_post_row post; /* if not is_whole: only the id is set; its texts belong to the
                                merge */
    uint64_t author;         /* if not is_whole */
};

/* A group that is asked with one call. */
struct sl_home_source {
    uint32_t shard;
    bool is_kept;   /* not authors but the stored part of the timeline, asked for by its owner */
    bool is_due;    /* must be asked in this round */
    uint64_t until; /* complete above this id; UINT64_MAX: nothing has been asked yet */
    size_t author_at, author_count; /* in `authors` */
    size_t post_at, post_count;     /* in `posts`: to be read once, by their ids */
};

/* An author whose posts are pushed from now on, as far as the author's shard knows. */
struct sl_home_settled {
    uint64_t author;
    uint64_t since; /* id of the follow by which that shard knows the reader; 0: not needed */
};

struct sl_home_merge {
    struct sl_meta meta;
    uint64_t reader;
    uint64_t before, after; /* exclusive bounds of ids; 0: no bound */
    size_t limit;           /* number of posts wanted */
    bool is_whole;          /* rows are complete posts, else ids */
    bool is_bare;           /* complete posts may lack what a cache has */
    bool is_settling;       /* also collect which authors are settled */

    struct sl_home_source *sources;
    size_t source_count;
    struct sl_home_row *rows; /* newest first after sl_home_merge_plan() */
    size_t row_count;
    uint64_t newer;        /* upper bound of the posts before the page, when all have been asked */
    struct buffer settled; /* struct sl_home_settled */

    /* private */
    size_t source_room, row_room;
    struct buffer authors, posts; /* uint64_t */
};

void sl_home_merge_done(struct sl_home_merge *merge);

/* Adds authors to be asked for posts below `until` (UINT64_MAX: from `before` on). 0; -ENOMEM;
 * -EBADMSG: not an id of this database. */
int sl_home_merge_add(struct sl_home_merge *merge, const uint64_t *authors, size_t count,
                      uint64_t until, struct failure *reterr);
/* Adds posts to be read by their ids, together with a call to their shard. */
int sl_home_merge_add_posts(struct sl_home_merge *merge, const uint64_t *posts, size_t count,
                            struct failure *reterr);
/* Adds the stored part of the timeline, which is complete above `until`. */
int sl_home_merge_add_kept(struct sl_home_merge *merge, uint64_t until, struct failure *reterr);

/* Sorts the rows and decides which sources are due. false: none, and up to `limit` rows are
 * complete. */
bool sl_home_merge_plan(struct sl_home_merge *merge);

/* The number of posts that one call asks for. */
size_t sl_home_merge_portion(const struct sl_home_merge *merge);
/* Adds the bound for a source: '+inf' or '(ID'. */
void sl_home_merge_add_before(const struct sl_home_merge *merge, uint64_t until,
                              struct sl_call *call);
void sl_home_merge_add_after(const struct sl_home_merge *merge, struct sl_call *call);

/* Adds the form in which the rows are wanted. */
void sl_home_merge_add_form(const struct sl_home_merge *merge, struct sl_call *call);

/* Builds the call for a due source that is not the stored part. 0; -ENOMEM. */
int sl_home_merge_call(const struct sl_home_merge *merge, size_t source, struct sl_call *call,
                       struct failure *reterr);
/* 0; -EBADMSG; -ENOMEM; else as sl_reply_check(). */
int sl_home_merge_take(struct sl_home_merge *merge, size_t source, const struct redisReply *reply,
                       struct failure *reterr);
/* Takes the rows of an answer. 0; -EBADMSG; -ENOMEM. */
int sl_home_merge_take_rows(struct sl_home_merge *merge, const struct redisReply *rows,
                            struct failure *reterr);

/* Appends the list of ids in element `i` of an array to `ids`. 0; -EBADMSG; -ENOMEM. */
int sl_home_merge_read_ids(const struct redisReply *reply, size_t i, struct buffer *ids,
                           struct failure *reterr);
