/* src/social/public_timeline.h - the public timeline: the newest public posts of all users.
 *
 * Each shard reads its log backwards, so the timeline reaches back as far as the logs. All shards
 * are asked at the same time. Of their answers only the posts above the greatest id at which one of
 * them stopped belong to the page:
 *
 *     for each shard: sl_public_call(), and its sl_public_reply()
 *     floor = the greatest stop; the page: posts of all shards, newest first, not below floor
 *
 * The result contains ids; sl_posts_calls() reads the posts. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "src/call/call.h"
#include "src/call/read.h"
#include "src/model/database.h"

struct redisReply;

/* Lists the public posts of `shard` that `reader` may see, at most page->limit. 0; -EINVAL: invalid
 * shard, reader or page; -ENOMEM. */
SL_EXPORT int sl_public_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                             uint32_t shard, const struct sl_page *page, struct failure *reterr);
/* *ret_count posts. They are complete down to *ret_stop; 0: down to the end of the log. 0, or as
 * sl_reply_check(). */
SL_EXPORT int sl_public_reply(const struct redisReply *reply, uint64_t *ret_stop, size_t *ret_count,
                              struct failure *reterr);
/* Requires `i` < count. Newest first. 0; -EBADMSG. */
SL_EXPORT int sl_public_at(const struct redisReply *reply, size_t i, uint64_t *ret_post,
                           struct failure *reterr);
