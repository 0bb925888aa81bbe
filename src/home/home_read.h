/* src/home/home_read.h - reads a home timeline.
 *
 * A home timeline consists of the newest posts by a user and by those whom the user follows, as far
 * as the user may see them. It is assembled from several shards, so that a read takes a few rounds
 * of calls. All calls of a round may be sent together, over one or several connections:
 *
 *     r = sl_home_read_new(&read, &meta, &reader, &page, &failure);
 *     while (r == 0 && sl_home_read_calls(read, &calls, &count, &failure) == 0 && count > 0) {
 *         r = sl_redis_link_run_many(link, calls, count, replies, &failure);           (blocking)
 *         for (size_t i = 0; r == 0 && i < count; i++)
 *             r = sl_home_read_take(read, i, replies[i], &failure);
 *         ...
 *     }
 *     for (size_t i = 0; i < sl_home_read_count(read); i++)
 *         show(sl_home_read_at(read, i));
 *     sl_home_read_free(read);
 *
 * sl_home_run() does this on a link. One round is enough if all followed users are in the reader's
 * shard, and the page is stored there or there are at most 250 of them. Other shards make it two.
 * The end of a full timeline takes two to six.
 *
 * The setting `timeline` says how posts get onto timelines (enum sl_timeline in settings.h); the
 * result is the same. A reader counts as active for `home-away` after a read. Nothing is pushed to
 * other users; their timelines are assembled again when they return. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/call/call.h"
#include "src/call/write.h"
#include "src/model/database.h"
#include "src/redis/redis_link.h"
#include "src/social/post_rows.h"

struct redisReply;
struct sl_home_read;

enum { SL_HOME_PAGE_MAX = 200 };

/* The newest `limit` posts with ids below `before` and above `after`; 0: no bound. */
struct sl_home_page {
    uint64_t before, after;
    size_t limit; /* 1 .. SL_HOME_PAGE_MAX */
    bool is_bare; /* rows may be bare, because the caller has a cache (src/cache/cached_rows.h) */
};

/* 0; -EINVAL: invalid reader or page; -ENOMEM. */
SL_EXPORT int sl_home_read_new(struct sl_home_read **ret_read, const struct sl_meta *meta,
                               const struct sl_user_ref *reader, const struct sl_home_page *page,
                               struct failure *reterr);
SL_EXPORT void sl_home_read_free(struct sl_home_read *read);

/* Returns the calls of the next round, valid until the next call of this function; 0 calls: the
 * page is complete. All calls of the previous round must have been answered. 0; -ENOMEM. */
SL_EXPORT int sl_home_read_calls(struct sl_home_read *read, struct sl_call **ret_calls,
                                 size_t *ret_count, struct failure *reterr);
/* Takes the reply to call `i` of the round, in any order, and copies what it needs. 0; -ENOENT: no
 * such reader; -EBADMSG; -ENOMEM; else as sl_reply_check(). After a failure the read can only be
 * freed. */
SL_EXPORT int sl_home_read_take(struct sl_home_read *read, size_t i, const struct redisReply *reply,
                                struct failure *reterr);

/* The rows of the page, newest first. The next page is the one before its last row. */
SL_EXPORT size_t sl_home_read_count(const struct sl_home_read *read);
SL_EXPORT const struct sl_post_row *sl_home_read_at(const struct sl_home_read *read, size_t i);

/* Does a whole read on a link. 0; a negative errno of any of the above. */
SL_EXPORT int sl_home_run(struct sl_redis_link *link, struct sl_home_read *read,
                          struct failure *reterr);
