/* src/social/follows.h - following and unfollowing, and the lists of followers and followed
 * users. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/call/call.h"
#include "src/call/write.h"
#include "src/model/database.h"
#include "src/social/user_list.h"
#include "src/social/users.h"

enum { SL_FOLLOW_MAX = 1000 }; /* targets in one call */

/* Makes `user` follow or unfollow `target`. The answer (sl_write_reply) contains the event's id; 0
 * if nothing had to be changed; -EDQUOT: the user follows as many users as the setting
 * following-max allows.
 *
 * If both users are in one shard, both sides change at once. Otherwise a task changes the target's
 * side. The user's shard cannot look the target up then, so the caller passes its id, and login and
 * name for the event (sl_user_find_call()).
 *
 * 0; -EXDEV: the target is in another shard and only its login is given; -EINVAL; -ENOMEM. */
SL_EXPORT int sl_follow_call(struct sl_call *call, const struct sl_meta *meta,
                             struct sl_slice request_id, const struct sl_user_ref *user,
                             const struct sl_user *target, struct failure *reterr);
SL_EXPORT int sl_unfollow_call(struct sl_call *call, const struct sl_meta *meta,
                               struct sl_slice request_id, const struct sl_user_ref *user,
                               const struct sl_user *target, struct failure *reterr);

/* The same for 1 to SL_FOLLOW_MAX targets in one step. The answer (sl_write_many_reply) has a
 * result for each, and each change is an event of its own. sl_follow_needs_lookup() says which
 * targets must be looked up first; one round trip is enough for all. Pass a target that was not
 * found as (struct sl_user){0}; its result is -ENOENT. */
SL_EXPORT int sl_follow_many_call(struct sl_call *call, const struct sl_meta *meta,
                                  struct sl_slice request_id, const struct sl_user_ref *user,
                                  const struct sl_user *targets, size_t count,
                                  struct failure *reterr);
SL_EXPORT int sl_unfollow_many_call(struct sl_call *call, const struct sl_meta *meta,
                                    struct sl_slice request_id, const struct sl_user_ref *user,
                                    const struct sl_user *targets, size_t count,
                                    struct failure *reterr);

/* Whether `target` is in another shard than `user`. 0; -EINVAL: one of them cannot be a user. */
SL_EXPORT int sl_follow_needs_lookup(const struct sl_meta *meta, const struct sl_user_ref *user,
                                     const struct sl_user_ref *target, bool *ret_needs,
                                     struct failure *reterr);

/* Lists the followers of `user`, or those whom `user` follows. The reply is read with
 * sl_user_list_reply(). Their number is in the user's row (sl_users_calls()). 0; -EINVAL: invalid
 * user or page; -ENOMEM. */
SL_EXPORT int sl_follower_list_call(struct sl_call *call, const struct sl_meta *meta,
                                    const struct sl_user_ref *user, const struct sl_page *page,
                                    struct failure *reterr);
SL_EXPORT int sl_following_list_call(struct sl_call *call, const struct sl_meta *meta,
                                     const struct sl_user_ref *user, const struct sl_page *page,
                                     struct failure *reterr);

/* Reads the ids of all users whom a user follows, in the order in which they were followed. 0;
 * -ENOMEM. */
SL_EXPORT int sl_following_call(struct sl_call *call, uint64_t user, struct failure *reterr);
/* *ret_count ids, which sl_following_at() returns. 0, or as sl_reply_check(). */
SL_EXPORT int sl_following_reply(const struct redisReply *reply, size_t *ret_count,
                                 struct failure *reterr);
/* An id as decimal text, a slice of the reply. */
SL_EXPORT struct sl_slice sl_following_at(const struct redisReply *reply, size_t i);
