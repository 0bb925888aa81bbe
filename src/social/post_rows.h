/* src/social/post_rows.h - reads posts by id, the posts of a user, and the comments of a post. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "src/call/read.h"
#include "src/call/shard_calls.h"
#include "src/call/write.h"
#include "src/model/database.h"

struct redisReply;

/* A post with everything that is shown of it. A bare row, which is returned only if requested,
 * lacks `json`, because a cache has the rest (src/cache/cached_rows.h). */
struct sl_post_row {
    uint64_t id;          /* also its position in lists */
    struct sl_slice json; /* as in the post's event, but with the author's current name */
    uint64_t likes, comments;
    uint64_t author;             /* of a bare row; else 0 */
    struct sl_slice login, name; /* of the author, in a bare row */
};

/* Reads `count` posts in one round trip, as far as `reader` may see them. 0; -EINVAL: the reader or
 * a post is not an id of this database; -ENOMEM. */
SL_EXPORT int sl_posts_calls(struct sl_shard_calls *calls, const struct sl_meta *meta,
                             uint64_t reader, const uint64_t *posts, size_t count,
                             struct failure *reterr);
/* The same for one post: one call, whose reply has one row. */
SL_EXPORT int sl_post_row_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                               uint64_t post, struct failure *reterr);
/* Checks that a reply has rows for `count` posts. 0, or as sl_reply_check(). */
SL_EXPORT int sl_posts_reply(const struct redisReply *reply, size_t count, struct failure *reterr);
/* Row `i` < count of a reply that sl_posts_reply() accepted. The slices are those of the reply. 0;
 * -ENOENT: no such post, or the reader may not see it; -EBADMSG. */
SL_EXPORT int sl_posts_at(const struct redisReply *reply, size_t i, struct sl_post_row *ret_row,
                          struct failure *reterr);

/* Lists the posts of `user`. 0; -EINVAL: invalid reader, user or page; -ENOMEM. */
SL_EXPORT int sl_post_list_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                                const struct sl_user_ref *user, const struct sl_page *page,
                                struct failure *reterr);
/* Lists the posts that reply to `post`. 0; -EINVAL; -ENOMEM. */
SL_EXPORT int sl_comment_list_call(struct sl_call *call, const struct sl_meta *meta,
                                   uint64_t reader, uint64_t post, const struct sl_page *page,
                                   struct failure *reterr);
/* *ret_count rows, which sl_post_list_at() returns; fewer than the limit only at the end of the
 * list. 0; -ENOENT: no such user, or post; else as sl_reply_check(). */
SL_EXPORT int sl_post_list_reply(const struct redisReply *reply, size_t *ret_count,
                                 struct failure *reterr);
/* Reads row `i`. Some rows contain only the id (`json` is absent and `author` is 0): comments in
 * another shard; posts that follow 500 posts that the reader may not see; and posts that the
 * archive may have (src/archive/archived.h). Read the first two with sl_posts_calls(), which
 * answers -ENOENT if there is nothing to be seen. The slices are those of the reply. 0;
 * -EBADMSG. */
SL_EXPORT int sl_post_list_at(const struct redisReply *reply, size_t i, struct sl_post_row *ret_row,
                              struct failure *reterr);
