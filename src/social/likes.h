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

/* The same change of what the user likes, in the user's shard: to be sent before those above where
 * the post lives in another, where the user has to be looked up anyway: the answer is a
 * sl_user_find_reply(). Where both live in one shard, nothing is to be sent. 0; -EINVAL; -ENOMEM.
 */
SL_EXPORT int sl_like_note_call(struct sl_call *call, const struct sl_meta *meta,
                                const struct sl_user_ref *user, uint64_t post,
                                struct failure *reterr);
SL_EXPORT int sl_unlike_note_call(struct sl_call *call, const struct sl_meta *meta,
                                  const struct sl_user_ref *user, uint64_t post,
                                  struct failure *reterr);

/* What `user` likes, newest like first. The list may hold posts that are gone, that the user may
 * not see any more or does not like any more (sl_included_call() tells), and lacks likes of before
 * version 0.2 unless the database has the form `likes` (src/database/forms.h). 0; -EINVAL: no such
 * user or page can be; -ENOMEM. */
SL_EXPORT int sl_liked_list_call(struct sl_call *call, const struct sl_meta *meta,
                                 const struct sl_user_ref *user, const struct sl_page *page,
                                 struct failure *reterr);
/* *ret_count rows. 0; -ENOENT: no such user; else as sl_reply_check(). */
SL_EXPORT int sl_liked_list_reply(const struct redisReply *reply, size_t *ret_count,
                                  struct failure *reterr);

struct sl_liked_post {
    uint64_t position; /* the id of the like, which is a time */
    uint64_t post;
};

/* 0; -EBADMSG. */
SL_EXPORT int sl_liked_list_at(const struct redisReply *reply, size_t i,
                               struct sl_liked_post *ret_liked, struct failure *reterr);

/* Who likes `post`; the answer is a sl_user_list_reply(). How many do stands in the post's row
 * (sl_posts_calls()). 0; -EINVAL: no such reader, post or page can be; -ENOMEM. */
SL_EXPORT int sl_like_list_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                                uint64_t post, const struct sl_page *page, struct failure *reterr);
