/* src/social/follows.h - who follows whom. */
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

/* `user` follows `target`, or does not any more. The answer (sl_write_reply) holds the event's id,
 * 0 when it was so already; -EDQUOT: the user follows as many as the setting following-max allows.
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

/* The same for many targets, 1 to SL_FOLLOW_MAX, in one step. The answer (sl_write_many_reply) says
 * of each what became of it, and each change is an event of its own. Which of the targets have to
 * be looked up first, all in one round trip, sl_follow_needs_lookup() tells; one that is not found
 * is handed over as (struct sl_user){0}, and answered -ENOENT in its place. */
SL_EXPORT int sl_follow_many_call(struct sl_call *call, const struct sl_meta *meta,
                                  struct sl_slice request_id, const struct sl_user_ref *user,
                                  const struct sl_user *targets, size_t count,
                                  struct failure *reterr);
SL_EXPORT int sl_unfollow_many_call(struct sl_call *call, const struct sl_meta *meta,
                                    struct sl_slice request_id, const struct sl_user_ref *user,
                                    const struct sl_user *targets, size_t count,
                                    struct failure *reterr);

/* Does `target` live in another shard than `user`? 0; -EINVAL: one of them can be no user. */
SL_EXPORT int sl_follow_needs_lookup(const struct sl_meta *meta, const struct sl_user_ref *user,
                                     const struct sl_user_ref *target, bool *ret_needs,
                                     struct failure *reterr);

/* Who follows `user`, and whom `user` follows; the answer is a sl_user_list_reply(). How many there
 * are stands in the user's row (sl_users_calls()). 0; -EINVAL: no such user or page can be;
 * -ENOMEM.
 */
SL_EXPORT int sl_follower_list_call(struct sl_call *call, const struct sl_meta *meta,
                                    const struct sl_user_ref *user, const struct sl_page *page,
                                    struct failure *reterr);
SL_EXPORT int sl_following_list_call(struct sl_call *call, const struct sl_meta *meta,
                                     const struct sl_user_ref *user, const struct sl_page *page,
                                     struct failure *reterr);

/* Ids of all whom a user follows, oldest relation first. 0; -ENOMEM. */
SL_EXPORT int sl_following_call(struct sl_call *call, uint64_t user, struct failure *reterr);
/* *ret_count ids, each then read with sl_following_at(). 0, or as sl_reply_check(). */
SL_EXPORT int sl_following_reply(const struct redisReply *reply, size_t *ret_count,
                                 struct failure *reterr);
/* As decimal text; the slice is the reply's. */
SL_EXPORT struct sl_slice sl_following_at(const struct redisReply *reply, size_t i);
