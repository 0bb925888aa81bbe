/* gateway/api/cache_reader.h - uses the cache (src/cache/cache.h) without blocking the loop.
 *
 * A thread of its own asks the servers. It is not one of libuv's pool, because a slow archive
 * would block it, and vice versa. A caller waits for at most twice the server timeout; after that,
 * or if there are too many jobs, the result is that nothing is known. Belongs to the thread of the
 * loop. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "gateway/metrics/metrics.h"
#include "src/cache/cache.h"

enum { CACHE_READER_JOBS_MAX = 1024 };

struct cache_reader;

/* `items` have the values that are known, which the callee may take; NULL: nothing is known. `r`:
 * 0; -ECANCELED: the reader is being freed. */
typedef void (*cache_read_fn)(void *owner, int r, struct sl_cache_item *items, size_t count);

/* `url` must have been checked. Idle until a database is set. NULL: out of memory, or no thread. */
struct cache_reader *cache_reader_new(uv_loop_t *loop, const char *url, uint32_t timeout_ms,
                                      uint64_t ttl_ms, struct metrics *metrics);
/* All waiting callers are called. The loop is needed until the handles are closed. NULL is
 * allowed. */
void cache_reader_free(struct cache_reader *reader);

/* Sets the id of the database to which later items belong. */
void cache_reader_set_database(struct cache_reader *reader, const char *database_id);

/* Whether the cache is not available at the moment. It must still be used: that is how its return
 * is noticed. */
bool cache_reader_is_away(const struct cache_reader *reader);

/* All functions take ownership of the items, allocated with mem_alloc(), and their values. */

/* 0: `done` will be called, later; -EAGAIN, -ENOMEM: nothing is known, and `items` freed. */
int cache_reader_get_take(struct cache_reader *reader, struct sl_cache_item *items, size_t count,
                          cache_read_fn done, void *owner);
void cache_reader_put_take(struct cache_reader *reader, struct sl_cache_item *items, size_t count,
                           uint64_t read_ms);
void cache_reader_drop_take(struct cache_reader *reader, struct sl_cache_item *items, size_t count);
