/* src/archive/archived.h - read posts that the archive has.
 *
 * The archive knows no rules; Redis does. So what sl_archive_list() and sl_archive_find() gave is
 * sent to the shards of its authors, which answer as they do for posts of their own: with rows for
 * sl_posts_reply() and sl_posts_at() (src/social/post_rows.h), for what `reader` may see.
 *
 * A profile is read on in the archive when a page of Redis (sl_post_list_call()) has fewer rows
 * than were asked for: those before the last of them. A post is always in one of the two, so no
 * page has a hole; Redis is asked first. What is said of a post, likes and comments, stays in
 * Redis. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/archive/archive.h"
#include "src/call/read.h"
#include "src/call/shard_calls.h"
#include "src/model/database.h"

/* 0; -EINVAL: a reader, or a post of the archive, that this database cannot have; -ENOMEM. */
SL_EXPORT int sl_archived_posts_calls(struct sl_shard_calls *calls, const struct sl_meta *meta,
                                      uint64_t reader, const struct sl_archive_post *posts,
                                      size_t count, struct failure *reterr);

/* The comments of a post that the archive has and Redis has not, and who likes it. Send it when
 * Redis has answered -ENOENT to sl_comment_list_call() or sl_like_list_call(); the answers are read
 * as theirs. 0; -EINVAL: a reader, post or page that there cannot be; -ENOMEM. */
SL_EXPORT int sl_archived_comment_list_call(struct sl_call *call, const struct sl_meta *meta,
                                            uint64_t reader, const struct sl_archive_post *post,
                                            const struct sl_page *page, struct failure *reterr);
SL_EXPORT int sl_archived_like_list_call(struct sl_call *call, const struct sl_meta *meta,
                                         uint64_t reader, const struct sl_archive_post *post,
                                         const struct sl_page *page, struct failure *reterr);
