/* src/social/public_timeline.h - the newest public posts of everybody.
 *
 * Each shard has its own in its log, which is read backwards: the timeline reaches back as far as
 * the logs do. All shards are asked at once; of what they say only what is younger than where each
 * of them has stopped is the timeline:
 *
 *     for each shard: sl_public_call(), and its sl_public_reply()
 *     floor = the greatest stop; posts of all, newest first, as far as they are not below it
 *
 * What a post is, sl_posts_calls() tells. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "src/call/call.h"
#include "src/call/read.h"
#include "src/model/database.h"

struct redisReply;

/* Those of `shard`, as `reader` may see them; at most page->limit. 0; -EINVAL: no such shard,
 * reader or page can be; -ENOMEM. */
SL_EXPORT int sl_public_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                             uint32_t shard, const struct sl_page *page, struct failure *reterr);
/* *ret_count posts; there are no others of this shard down to *ret_stop, 0: down to the end of the
 * log. 0; else as sl_reply_check(). */
SL_EXPORT int sl_public_reply(const struct redisReply *reply, uint64_t *ret_stop, size_t *ret_count,
                              struct failure *reterr);
/* `i` < count, newest first. 0; -EBADMSG. */
SL_EXPORT int sl_public_at(const struct redisReply *reply, size_t i, uint64_t *ret_post,
                           struct failure *reterr);
