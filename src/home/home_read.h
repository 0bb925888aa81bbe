/* src/home/home_read.h - read a home timeline: the newest posts by a user and by those the user
 * follows, as far as the user may see them.
 *
 * A timeline is put together from several shards, so that a read is a few rounds of calls rather
 * than one. In each round all calls may go out together, to one connection or to several:
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
 * sl_home_run() does this on a link. One round is enough when all who are followed live in the
 * reader's shard and the page is kept there or is found among 250 of them; another shard makes it
 * two; the end of a full timeline, two to six.
 *
 * The setting `timeline` says how posts come to be there (enum sl_timeline in settings.h); all give
 * the same timeline. Who reads counts as active for as long as `home-away` says: to others nothing
 * is pushed, and their timelines are put together anew when they come back. */
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
    bool is_bare; /* rows may be bare: there is a cache (src/cache/cached_rows.h) */
};

/* 0; -EINVAL: no such reader or page can be; -ENOMEM. */
SL_EXPORT int sl_home_read_new(struct sl_home_read **ret_read, const struct sl_meta *meta,
                               const struct sl_user_ref *reader, const struct sl_home_page *page,
                               struct failure *reterr);
SL_EXPORT void sl_home_read_free(struct sl_home_read *read);

/* The calls of the next round, which live until the one after it; 0 of them: the page is there.
 * Every call of the round before has been answered. 0; -ENOMEM. */
SL_EXPORT int sl_home_read_calls(struct sl_home_read *read, struct sl_call **ret_calls,
                                 size_t *ret_count, struct failure *reterr);
/* The reply to call `i` of the round, in any order; it is copied from. 0; -ENOENT: there is no such
 * reader; -EBADMSG; -ENOMEM; else as sl_reply_check(). After a failure the read can be freed only.
 */
SL_EXPORT int sl_home_read_take(struct sl_home_read *read, size_t i, const struct redisReply *reply,
                                struct failure *reterr);

/* The page: rows, newest first. The next page is the one before the last of them. */
SL_EXPORT size_t sl_home_read_count(const struct sl_home_read *read);
SL_EXPORT const struct sl_post_row *sl_home_read_at(const struct sl_home_read *read, size_t i);

/* A whole read on a link. 0; a negative errno of any of the above. */
SL_EXPORT int sl_home_run(struct sl_redis_link *link, struct sl_home_read *read,
                          struct failure *reterr);
