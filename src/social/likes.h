/* src/social/likes.h - liking posts, and the lists of likes. */
#pragma once

#include <stdint.h>

#include "src/call/write.h"
#include "src/social/user_list.h"

/* Makes `user` like `post`, or not any more. There is no event. The answer (sl_write_reply)
 * contains an id, 0 if nothing had to be changed; -ENOENT: no such post, or the user may not see
 * it.
 *
 * A like is stored with the post. If the user is in another shard, the caller must know that the
 * user exists (sl_user_find_call()).
 *
 * 0; -EXDEV: the user is in another shard and only the login is given; -EINVAL; -ENOMEM. */
SL_EXPORT int sl_like_call(struct sl_call *call, const struct sl_meta *meta,
                           struct sl_slice request_id, const struct sl_user_ref *user,
                           uint64_t post, struct failure *reterr);
SL_EXPORT int sl_unlike_call(struct sl_call *call, const struct sl_meta *meta,
                             struct sl_slice request_id, const struct sl_user_ref *user,
                             uint64_t post, struct failure *reterr);

/* Makes the same change to the list of what the user likes, in the user's shard. Needed only if the
 * post is in another shard. Send it before the calls above. It also looks up the user: read the
 * answer with sl_user_find_reply(). 0; -EINVAL; -ENOMEM. */
SL_EXPORT int sl_like_note_call(struct sl_call *call, const struct sl_meta *meta,
                                const struct sl_user_ref *user, uint64_t post,
                                struct failure *reterr);
SL_EXPORT int sl_unlike_note_call(struct sl_call *call, const struct sl_meta *meta,
                                  const struct sl_user_ref *user, uint64_t post,
                                  struct failure *reterr);

/* Lists the posts that `user` likes, newest like first. The list may contain posts that are
 * deleted, that the user may no longer see, or no longer likes (sl_included_call() tells). Likes
 * made before version 0.2 are missing unless the database has the form `likes`
 * (src/database/forms.h). 0; -EINVAL: invalid user or page; -ENOMEM. */
SL_EXPORT int sl_liked_list_call(struct sl_call *call, const struct sl_meta *meta,
                                 const struct sl_user_ref *user, const struct sl_page *page,
                                 struct failure *reterr);
/* *ret_count rows. 0; -ENOENT: no such user; else as sl_reply_check(). */
SL_EXPORT int sl_liked_list_reply(const struct redisReply *reply, size_t *ret_count,
                                  struct failure *reterr);

struct sl_liked_post {
    uint64_t position; /* the id of the like, which contains its time */
    uint64_t post;
};

/* 0; -EBADMSG. */
SL_EXPORT int sl_liked_list_at(const struct redisReply *reply, size_t i,
                               struct sl_liked_post *ret_liked, struct failure *reterr);

/* Lists the users who like `post`. The reply is read with sl_user_list_reply(). Their number is in
 * the post's row (sl_posts_calls()). 0; -EINVAL: invalid reader, post or page; -ENOMEM. */
SL_EXPORT int sl_like_list_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                                uint64_t post, const struct sl_page *page, struct failure *reterr);
