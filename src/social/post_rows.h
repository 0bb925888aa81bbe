/* src/social/post_rows.h - read posts: by their ids, a user's, the comments of one. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "src/call/read.h"
#include "src/call/shard_calls.h"
#include "src/call/write.h"
#include "src/model/database.h"

struct redisReply;

/* All that is shown of a post. A bare row, which only those get who ask for it, lacks `json`: a
 * cache is to have the rest of it (src/cache/cached_rows.h). */
struct sl_post_row {
    uint64_t id;          /* its position in lists, too */
    struct sl_slice json; /* the post as in its event; the author's name is the one of now */
    uint64_t likes, comments;
    uint64_t author;             /* of a bare row; else 0 */
    struct sl_slice login, name; /* the author's; the same */
};

/* `count` posts in one round trip, as `reader` may see them. 0; -EINVAL: one of them, or the
 * reader, is no id of this database; -ENOMEM. */
SL_EXPORT int sl_posts_calls(struct sl_shard_calls *calls, const struct sl_meta *meta,
                             uint64_t reader, const uint64_t *posts, size_t count,
                             struct failure *reterr);
/* The same for one post, in one call whose reply has one row. */
SL_EXPORT int sl_post_row_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                               uint64_t post, struct failure *reterr);
/* One call's reply: are there rows for `count` posts? 0, or as sl_reply_check(). */
SL_EXPORT int sl_posts_reply(const struct redisReply *reply, size_t count, struct failure *reterr);
/* Row `i` < count of a reply that sl_posts_reply() accepted; the slices are the reply's.
 * 0; -ENOENT: there is no such post, or the reader may not see it; -EBADMSG. */
SL_EXPORT int sl_posts_at(const struct redisReply *reply, size_t i, struct sl_post_row *ret_row,
                          struct failure *reterr);

/* What `user` has posted. 0; -EINVAL: no such reader, user or page can be; -ENOMEM. */
SL_EXPORT int sl_post_list_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                                const struct sl_user_ref *user, const struct sl_page *page,
                                struct failure *reterr);
/* The posts that answer `post`. 0; -EINVAL; -ENOMEM. */
SL_EXPORT int sl_comment_list_call(struct sl_call *call, const struct sl_meta *meta,
                                   uint64_t reader, uint64_t post, const struct sl_page *page,
                                   struct failure *reterr);
/* *ret_count rows, each then read with sl_post_list_at(): up to the limit as long as there are that
 * many. 0; -ENOENT: no such user, or post; else as sl_reply_check(). */
SL_EXPORT int sl_post_list_reply(const struct redisReply *reply, size_t *ret_count,
                                 struct failure *reterr);
/* Some rows have the id only, `json` is absent and `author` 0: comments of another shard, and posts
 * behind 500 that were passed over because the reader may not see them, of which sl_posts_calls()
 * tells the rest, or -ENOENT when there is nothing to be seen; and what the archive may have
 * (src/archive/archived.h). The slices are the reply's. 0; -EBADMSG. */
SL_EXPORT int sl_post_list_at(const struct redisReply *reply, size_t i, struct sl_post_row *ret_row,
                              struct failure *reterr);
