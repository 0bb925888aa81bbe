/* src/cache/cached_rows.h - read posts and users with a cache (src/cache/cache.h).
 *
 * The cache has what never changes: of a public post who wrote it and all of its JSON behind the
 * author, of a user login, signup and profile, with their version, for those change now and then.
 * Redis answers the rest, with a bare row, in the same round trip in which it decides whether the
 * reader may see the post: the author's name, the counts, the version.
 *
 * By ids, the cache is asked first and Redis is told what it had:
 *
 *     sl_cache_get(cache, items, count);
 *     r = sl_cached_posts_calls(&calls, &meta, reader, items, count, &failure);
 *     ...                                                        (replies as for sl_posts_calls())
 *     r = sl_posts_at(reply, i, &row, &failure);
 *     if (!sl_cached_post_json(&json, &row, items[k].value))      (false: it is to be read again)
 *     ...
 *     r = sl_cached_post_value(&value, &row, source)              (to put what was missing)
 *
 * Of lists and home timelines (`is_bare` of a page) Redis says first what is on them, then the
 * cache is asked for what the rows lack, and what that does not have is read by its id.
 *
 * Posts that are not public are not put there, and bare rows are of public ones only: whoever may
 * read the cache sees nothing that not everybody may see. A post that the archive had when it was
 * put is judged as if the archive had been asked (src/archive/archived.h), without asking it; of
 * one that was in Redis then, and is not now, Redis says that there is none: it may be in the
 * archive. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/cache/cache.h"
#include "src/call/shard_calls.h"
#include "src/model/database.h"
#include "src/social/post_rows.h"
#include "src/social/users.h"

struct buffer;

/* As sl_posts_calls(), telling Redis which of the items have a value. */
int sl_cached_posts_calls(struct sl_shard_calls *calls, const struct sl_meta *meta, uint64_t reader,
                          const struct sl_cache_item *items, size_t count, struct failure *reterr);
/* As sl_users_calls(): `items`, one for each user, have a value or none. */
int sl_cached_users_calls(struct sl_shard_calls *calls, const struct sl_meta *meta,
                          const struct sl_user_ref *users, const struct sl_cache_item *items,
                          size_t count, struct failure *reterr);

/* Appends the post as it is shown, with its counts. false: the row is bare, and `value` (which may
 * be absent) is not of this post by this author; nothing is appended. */
bool sl_cached_post_json(struct buffer *json, const struct sl_post_row *row, struct sl_slice value);
/* Makes a bare row a whole one, whose texts are the value's. false: as above, or the value is of
 * another version. */
bool sl_cached_user_fill(struct sl_user_row *row, struct sl_slice value);

/* Who gave the row? */
enum sl_cached_source { SL_CACHED_FROM_REDIS, SL_CACHED_FROM_ARCHIVE };

/* Appends to an empty buffer what the cache is to have of a post, or user, whose row is whole.
 * false: nothing, the post is not public, or the row is none of ours. */
bool sl_cached_post_value(struct buffer *value, const struct sl_post_row *row,
                          enum sl_cached_source source);
bool sl_cached_user_value(struct buffer *value, const struct sl_user_row *row);
