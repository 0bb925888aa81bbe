/* src/social/privacy.h - from whom does a user hide, and whom does a user not want to see?
 *
 * Whom `user` hides from does not see the user's posts any more: neither in reads nor on a home
 * timeline or home stream. Whom `user` mutes is not shown to the user there. Both leave the public
 * streams as they are, which are the same for everyone, and both leave the graph as it is. */
#pragma once

#include "src/call/call.h"
#include "src/call/write.h"
#include "src/model/database.h"
#include "src/social/user_list.h"
#include "src/social/users.h"

/* `user` hides from `target`, mutes `target`, or ends it. The answer (sl_write_reply) holds the id
 * of the event, which only gateways get; 0 when it was so already.
 *
 * The target is given as to sl_follow_call(): for one of another shard the id, and login and name
 * if they are known. 0; -EXDEV: the target lives elsewhere and only its login is given; -EINVAL;
 * -ENOMEM. */
SL_EXPORT int sl_hide_call(struct sl_call *call, const struct sl_meta *meta,
                           struct sl_slice request_id, const struct sl_user_ref *user,
                           const struct sl_user *target, struct failure *reterr);
SL_EXPORT int sl_unhide_call(struct sl_call *call, const struct sl_meta *meta,
                             struct sl_slice request_id, const struct sl_user_ref *user,
                             const struct sl_user *target, struct failure *reterr);
SL_EXPORT int sl_mute_call(struct sl_call *call, const struct sl_meta *meta,
                           struct sl_slice request_id, const struct sl_user_ref *user,
                           const struct sl_user *target, struct failure *reterr);
SL_EXPORT int sl_unmute_call(struct sl_call *call, const struct sl_meta *meta,
                             struct sl_slice request_id, const struct sl_user_ref *user,
                             const struct sl_user *target, struct failure *reterr);

/* Whom `user` hides from, and has muted; the answer is a sl_user_list_reply(), whose positions are
 * the users' ids. 0; -EINVAL: no such user or page can be; -ENOMEM. */
SL_EXPORT int sl_hidden_list_call(struct sl_call *call, const struct sl_meta *meta,
                                  const struct sl_user_ref *user, const struct sl_page *page,
                                  struct failure *reterr);
SL_EXPORT int sl_muted_list_call(struct sl_call *call, const struct sl_meta *meta,
                                 const struct sl_user_ref *user, const struct sl_page *page,
                                 struct failure *reterr);
