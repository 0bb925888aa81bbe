/* src/cache/cached_rows.h - reads posts and users with the help of a cache (src/cache/cache.h).
 *
 * The cache holds what never changes: of a public post its author and the rest of its JSON; of a
 * user login, signup and profile together with their version, because these change occasionally.
 * Redis returns the rest in a bare row: the author's name, the counts, the version. It does so in
 * the same round trip in which it decides whether the reader may see the post.
 *
 * To read by ids, ask the cache first, then tell Redis which items it had:
 *
 *     sl_cache_get(cache, items, count);
 *     r = sl_cached_posts_calls(&calls, &meta, reader, items, count, &failure);
 *     ...                                                        (replies as for sl_posts_calls())
 *     r = sl_posts_at(reply, i, &row, &failure);
 *     if (!sl_cached_post_json(&json, &row, items[k].value))      (false: read the post again)
 *     ...
 *     r = sl_cached_post_value(&value, &row, source)              (to store what was missing)
 *
 * For lists and home timelines (`is_bare` of a page), ask Redis first for the rows, then the cache
 * for what the rows lack, and then read by id what the cache does not have.
 *
 * Only public posts are cached, and only they have bare rows, so access to the cache reveals
 * nothing that is not public. A post that was cached from the archive is judged as if the archive
 * had been asked (src/archive/archived.h), without asking it. For a post that was cached from Redis
 * but is no longer there, Redis answers that it does not exist; it may be in the archive. */
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

/* Like sl_posts_calls(), and tells Redis which of the items have a cached value. */
int sl_cached_posts_calls(struct sl_shard_calls *calls, const struct sl_meta *meta, uint64_t reader,
                          const struct sl_cache_item *items, size_t count, struct failure *reterr);
/* Like sl_users_calls(). `items` has one element for each user, with or without a cached value. */
int sl_cached_users_calls(struct sl_shard_calls *calls, const struct sl_meta *meta,
                          const struct sl_user_ref *users, const struct sl_cache_item *items,
                          size_t count, struct failure *reterr);

/* Appends the post in the form shown to clients, with its counts. false: the row is bare, and
 * `value` (which may be absent) does not belong to this post and author; nothing is appended. */
bool sl_cached_post_json(struct buffer *json, const struct sl_post_row *row, struct sl_slice value);
/* Completes a bare row with the texts of the value. false: `value` does not belong to this user, or
 * has another version. */
bool sl_cached_user_fill(struct sl_user_row *row, struct sl_slice value);

/* Where the row was read. */
enum sl_cached_source { SL_CACHED_FROM_REDIS, SL_CACHED_FROM_ARCHIVE };

/* Appends the value that the cache should store for a post, or user, to an empty buffer. The row
 * must be complete. false: nothing to store, because the post is not public or the row is not
 * ours. */
bool sl_cached_post_value(struct buffer *value, const struct sl_post_row *row,
                          enum sl_cached_source source);
bool sl_cached_user_value(struct buffer *value, const struct sl_user_row *row);
