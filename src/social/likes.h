/* src/social/likes.h - who likes a post. */
#pragma once

#include <stdint.h>

#include "src/call/write.h"
#include "src/social/user_list.h"

/* `user` likes `post`, or does not any more. It makes no event. The answer (sl_write_reply) holds
 * an id, 0 when it was so already; -ENOENT: no such post, or the user may not see it.
 *
 * A like is kept with the post. When the user lives in another shard, whether there is such a user
 * is for the caller to know (sl_user_find_call()).
 * 0; -EXDEV: the user lives elsewhere and only the login is given; -EINVAL; -ENOMEM. */
SL_EXPORT int sl_like_call(struct sl_call *call, const struct sl_meta *meta,
                           struct sl_slice request_id, const struct sl_user_ref *user,
                           uint64_t post, struct failure *reterr);
SL_EXPORT int sl_unlike_call(struct sl_call *call, const struct sl_meta *meta,
                             struct sl_slice request_id, const struct sl_user_ref *user,
                             uint64_t post, struct failure *reterr);

/* Who likes `post`; the answer is a sl_user_list_reply(). How many do stands in the post's row
 * (sl_posts_calls()). 0; -EINVAL: no such reader, post or page can be; -ENOMEM. */
SL_EXPORT int sl_like_list_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                                uint64_t post, const struct sl_page *page, struct failure *reterr);
