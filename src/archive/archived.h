/* src/archive/archived.h - reading posts from the archive under the rules of the database.
 *
 * The archive does not know who may see a post; Redis does. So the results of sl_archive_list() and
 * sl_archive_find() are sent to the shards of their authors. These answer as they do for posts in
 * Redis, with rows for sl_posts_reply() and sl_posts_at() (src/social/post_rows.h) of what `reader`
 * may see.
 *
 * A list of a user's posts continues in the archive when a page from Redis (sl_post_list_call())
 * has fewer rows than requested: read the posts before its last row. Ask Redis first: a post is
 * always in one of the two, so no post is missed. Likes and comments of archived posts stay in
 * Redis. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/archive/archive.h"
#include "src/call/read.h"
#include "src/call/shard_calls.h"
#include "src/model/database.h"

/* 0; -EINVAL: a reader, or a post of the archive, that cannot belong to this database; -ENOMEM. */
SL_EXPORT int sl_archived_posts_calls(struct sl_shard_calls *calls, const struct sl_meta *meta,
                                      uint64_t reader, const struct sl_archive_post *posts,
                                      size_t count, struct failure *reterr);

/* The comments of a post that only the archive has, and the users who like it. Send the call when
 * Redis has answered -ENOENT to sl_comment_list_call() or sl_like_list_call(), and parse the reply
 * like theirs. 0; -EINVAL: an invalid reader, post or page; -ENOMEM. */
SL_EXPORT int sl_archived_comment_list_call(struct sl_call *call, const struct sl_meta *meta,
                                            uint64_t reader, const struct sl_archive_post *post,
                                            const struct sl_page *page, struct failure *reterr);
SL_EXPORT int sl_archived_like_list_call(struct sl_call *call, const struct sl_meta *meta,
                                         uint64_t reader, const struct sl_archive_post *post,
                                         const struct sl_page *page, struct failure *reterr);
