/* src/social/privacy.h - hiding from users and muting them.
 *
 * A user from whom `user` hides no longer sees the posts of `user`, neither in reads nor on home
 * timelines and home streams. A user whom `user` mutes is no longer shown to `user` there. Neither
 * changes the public streams, which are the same for everybody, nor who follows whom. */
#pragma once

#include "src/call/call.h"
#include "src/call/write.h"
#include "src/model/database.h"
#include "src/social/user_list.h"
#include "src/social/users.h"

/* Makes `user` hide from `target`, or mute `target`, or ends it. The answer (sl_write_reply)
 * contains the id of the event, which only gateways receive; 0 if nothing had to be changed.
 *
 * The target is passed as to sl_follow_call(): for one in another shard the id, and login and name
 * if they are known. 0; -EXDEV: the target is in another shard and only its login is given;
 * -EINVAL; -ENOMEM. */
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

/* Lists the users from whom `user` hides, or whom `user` has muted. The reply is read with
 * sl_user_list_reply(); positions are the users' ids. 0; -EINVAL: invalid user or page; -ENOMEM. */
SL_EXPORT int sl_hidden_list_call(struct sl_call *call, const struct sl_meta *meta,
                                  const struct sl_user_ref *user, const struct sl_page *page,
                                  struct failure *reterr);
SL_EXPORT int sl_muted_list_call(struct sl_call *call, const struct sl_meta *meta,
                                 const struct sl_user_ref *user, const struct sl_page *page,
                                 struct failure *reterr);
