/* src/follows.h - who follows whom. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/call.h"
#include "src/meta.h"
#include "src/users.h"
#include "src/write.h"

/* `user` follows `target`, or does not any more. The answer (sl_write_reply) holds the event's id,
 * 0 when it was so already.
 *
 * Both sides change at once when both users live in one shard. Otherwise the target's side follows
 * by a task, and as the user's shard cannot look the target up, the caller says who it is: the id,
 * and login and name for the event (sl_user_find_call()).
 * 0; -EXDEV: the target lives elsewhere and only its login is given; -EINVAL; -ENOMEM. */
SL_EXPORT int sl_follow_call(struct sl_call *call, const struct sl_meta *meta,
                             struct sl_slice request_id, const struct sl_user_ref *user,
                             const struct sl_user *target, struct failure *reterr);
SL_EXPORT int sl_unfollow_call(struct sl_call *call, const struct sl_meta *meta,
                               struct sl_slice request_id, const struct sl_user_ref *user,
                               const struct sl_user *target, struct failure *reterr);

/* Ids of all whom a user follows, oldest relation first. 0; -ENOMEM. */
SL_EXPORT int sl_following_call(struct sl_call *call, uint64_t user, struct failure *reterr);
/* *ret_count ids, each then read with sl_following_at(). 0, or as sl_reply_check(). */
SL_EXPORT int sl_following_reply(const struct redisReply *reply, size_t *ret_count,
                                 struct failure *reterr);
/* As decimal text; the slice is the reply's. */
SL_EXPORT struct sl_slice sl_following_at(const struct redisReply *reply, size_t i);
