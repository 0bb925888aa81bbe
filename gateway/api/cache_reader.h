/* gateway/api/cache_reader.h - the cache (src/cache/cache.h) beside the loop.
 *
 * A thread of its own asks the servers: not one of libuv's pool, where an archive that is slow
 * would be in its way, and it in the archive's. Nobody waits for it longer than
 * twice the time that a server has to answer: then, or when too much is to be done already, nothing
 * is known. Belongs to the thread of the loop. */
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
 * 0; -ECANCELED: the reader is freed. */
typedef void (*cache_read_fn)(void *owner, int r, struct sl_cache_item *items, size_t count);

/* `url` has been checked. Idle until a database is known. NULL: no memory, or no thread. */
struct cache_reader *cache_reader_new(uv_loop_t *loop, const char *url, uint32_t timeout_ms,
                                      uint64_t ttl_ms, struct metrics *metrics);
/* Whoever waits is called. The loop is needed until the handles are closed. NULL is fine. */
void cache_reader_free(struct cache_reader *reader);

/* Of which database (its id) are the things from now on? */
void cache_reader_set_database(struct cache_reader *reader, const char *database_id);

/* Is it of no use just now? It may be asked all the same, and is to be given things: that is how it
 * is found to be back. */
bool cache_reader_is_away(const struct cache_reader *reader);

/* All take the items over, mem_alloc()ed, with their values. */

/* 0: `done` will be called, later; -EAGAIN, -ENOMEM: nothing is known, and `items` freed. */
int cache_reader_get_take(struct cache_reader *reader, struct sl_cache_item *items, size_t count,
                          cache_read_fn done, void *owner);
void cache_reader_put_take(struct cache_reader *reader, struct sl_cache_item *items, size_t count,
                           uint64_t read_ms);
void cache_reader_drop_take(struct cache_reader *reader, struct sl_cache_item *items, size_t count);
