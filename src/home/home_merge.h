/* src/home/home_merge.h - the newest posts of many authors in many shards, merged by id.
 *
 * Authors are asked in groups, a script call for each group (home_feed.lua). A group answers with
 * its newest posts, and with the id above which these are all that it has. As long as that is above
 * what is still wanted, the group is asked for more. All calls of a round go out together:
 *
 *     merge.before = ..., and what else is public
 *     sl_home_merge_add(&merge, authors, count, UINT64_MAX, &failure)
 *     while (sl_home_merge_plan(&merge))
 *         for each due source: sl_home_merge_call(), and sl_home_merge_take() with the reply
 *
 * Shared by reads (home_read.c) and by the task that reads posts in (home_task.c). */
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
    struct sl_post_row post; /* unless posts are whole: the id alone; its texts are the merge's */
    uint64_t author;         /* unless posts are whole */
};

/* Who is asked with one call. */
struct sl_home_source {
    uint32_t shard;
    bool is_kept;   /* not authors, but what is kept of the timeline: asked by its owner */
    bool is_due;    /* is to be asked in this round */
    uint64_t until; /* above it all is known; UINT64_MAX: nothing has been asked */
    size_t author_at, author_count; /* in `authors` */
    size_t post_at, post_count;     /* in `posts`: to be asked for once, by their ids */
};

/* An author whose posts are pushed from now on, as far as the author's shard knows. */
struct sl_home_settled {
    uint64_t author;
    uint64_t since; /* the follow by which that shard knows of the reader; 0: it need not */
};

struct sl_home_merge {
    struct sl_meta meta;
    uint64_t reader;
    uint64_t before, after; /* ids below and above; 0: no bound */
    size_t limit;           /* posts that are wanted */
    bool is_whole;          /* posts with all that is shown of them, else ids */
    bool is_bare;           /* whole ones may lack what a cache has */
    bool is_settling;       /* which authors are settled is wanted, too */

    struct sl_home_source *sources;
    size_t source_count;
    struct sl_home_row *rows; /* newest first after sl_home_merge_plan() */
    size_t row_count;
    uint64_t newer; /* at most so many posts come before the page, when all have been asked */
    struct buffer settled; /* struct sl_home_settled */

    /* private */
    size_t source_room, row_room;
    struct buffer authors, posts; /* uint64_t */
};

void sl_home_merge_done(struct sl_home_merge *merge);

/* Authors to be asked for what is below `until` (and UINT64_MAX: from `before` on). 0; -ENOMEM;
 * -EBADMSG: one is no id of this database. */
int sl_home_merge_add(struct sl_home_merge *merge, const uint64_t *authors, size_t count,
                      uint64_t until, struct failure *reterr);
/* Posts to be asked for by their ids, with whoever is asked in their shard. */
int sl_home_merge_add_posts(struct sl_home_merge *merge, const uint64_t *posts, size_t count,
                            struct failure *reterr);
/* What is kept of the timeline, all of which is known above `until`. */
int sl_home_merge_add_kept(struct sl_home_merge *merge, uint64_t until, struct failure *reterr);

/* Sorts what there is and decides who is due. false: nobody, up to `limit` rows are there. */
bool sl_home_merge_plan(struct sl_home_merge *merge);

/* Posts that one call is asked for. */
size_t sl_home_merge_portion(const struct sl_home_merge *merge);
/* '+inf' or '(ID' for a question to a source. */
void sl_home_merge_add_before(const struct sl_home_merge *merge, uint64_t until,
                              struct sl_call *call);
void sl_home_merge_add_after(const struct sl_home_merge *merge, struct sl_call *call);

/* How the rows are to be. */
void sl_home_merge_add_form(const struct sl_home_merge *merge, struct sl_call *call);

/* The question to a due source that is not the kept one. 0; -ENOMEM. */
int sl_home_merge_call(const struct sl_home_merge *merge, size_t source, struct sl_call *call,
                       struct failure *reterr);
/* 0; -EBADMSG; -ENOMEM; else as sl_reply_check(). */
int sl_home_merge_take(struct sl_home_merge *merge, size_t source, const struct redisReply *reply,
                       struct failure *reterr);
/* The rows of an answer. 0; -EBADMSG; -ENOMEM. */
int sl_home_merge_take_rows(struct sl_home_merge *merge, const struct redisReply *rows,
                            struct failure *reterr);

/* Element `i` of an array, a list of ids, appended to `ids`. 0; -EBADMSG; -ENOMEM. */
int sl_home_merge_read_ids(const struct redisReply *reply, size_t i, struct buffer *ids,
                           struct failure *reterr);
