/* gateway/delivery/log_cache.h - batches of the shards' logs, read and decoded once for all
 * clients.
 *
 * A batch is kept until newer ones need the memory, and is used for every cursor in it. One batch
 * of a shard is requested at a time, so that clients with similar cursors use the same batches. If
 * Redis does not answer, the request is repeated, after 0.1 s at first, at most 5 s. Belongs to the
 * thread of its loop. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/list.h"
#include "gateway/delivery/segment.h"
#include "gateway/intake/event_decode.h"
#include "gateway/intake/log_reader.h"
#include "gateway/metrics/metrics.h"

struct log_cache;

enum { LOG_CACHE_RETRY_MS = 100 };

/* log_reader_read(), or a replacement in tests. */
typedef int (*log_read_fn)(struct log_reader *reader, uint32_t shard, uint64_t after, uint64_t to,
                           log_batch_fn done, void *owner);

/* log_reader_read_back(), or a replacement in tests. */
typedef int (*log_read_back_fn)(struct log_reader *reader, uint32_t shard, uint64_t to,
                                log_batch_fn done, void *owner);

struct log_cache_settings {
    uv_loop_t *loop;
    struct metrics *metrics;
    log_read_fn read;
    log_read_back_fn read_back;
    struct log_reader *reader;
    struct event_decoder *decoder;
    size_t max_bytes;
    uint32_t retry_ms; /* the first delay after a failure */
};

/* The events after `after`, in the order of ids. */
struct cached_batch {
    struct segment *segment;
    uint64_t number; /* in the order of requests, from 1 */
    uint32_t shard;
    uint64_t after;
    uint64_t end; /* this batch has what follows any cursor from `after` to below `end`; SL_ID_MAX:
                     the log had no more */
    uint64_t known; /* the newest event of the shard that had passed at the time of the request */
    bool is_pinned; /* kept until log_cache_unpin_all() */
    bool is_unreadable; /* the log contains an entry that is not an event */
    bool is_trimmed; /* what preceded its first entry is missing, and the log no longer reaches back
                        to `after`. Otherwise entries were removed from the log */
    struct list_node node, in_shard;
};

/* A batch has arrived, or (NULL) may be requested again after a failure. */
typedef void (*log_cache_fn)(void *owner, uint32_t shard, struct cached_batch *batch);

/* The batch that was requested with this id, or (NULL) it does not exist, or cannot be read. */
typedef void (*log_cache_back_fn)(void *owner, uint32_t shard, uint64_t to,
                                  const struct cached_batch *batch);

/* NULL: out of memory. */
struct log_cache *log_cache_new(const struct log_cache_settings *settings);
/* Must be called after the reader has answered everything. The loop must run once more to close the
 * timer. */
void log_cache_free(struct log_cache *cache);
void log_cache_on_change(struct log_cache *cache, log_cache_fn changed, log_cache_back_fn came_back,
                         void *owner);

/* The batch for this cursor; it may have no entry above it. NULL: not in the cache. Valid until the
 * next turn of the loop. */
struct cached_batch *log_cache_find(struct log_cache *cache, uint32_t shard, uint64_t after);
/* Requests it, unless another batch of the shard has been requested, or after a recent failure; in
 * these cases `changed` will be called, too. */
void log_cache_ask(struct log_cache *cache, uint32_t shard, uint64_t after, uint64_t known);
/* A batch with the events up to this id, for reading backwards. NULL: not in the cache. Valid until
 * the next turn of the loop. */
struct cached_batch *log_cache_find_back(struct log_cache *cache, uint32_t shard, uint64_t to);
/* Requests the batch that ends with this id, or with the newest one before it, unless another such
 * batch of the shard has been requested. If it cannot be read, it is not requested again. 0: there
 * will be an answer; -ENOMEM. */
int log_cache_ask_back(struct log_cache *cache, uint32_t shard, uint64_t to);
/* The number of requests so far: a batch with a higher number shows what the log contains now. */
uint64_t log_cache_asked(const struct log_cache *cache);
/* The log has more than the batch by now. */
void log_cache_drop(struct log_cache *cache, struct cached_batch *batch);
/* The log has lost what was logged after this id: batches that reach beyond it do not hold any
 * more, and neither does one that is on its way; that one is requested again. Not while a batch is
 * being read. */
void log_cache_rewind(struct log_cache *cache, uint32_t shard, uint64_t from);
/* A pinned batch is kept, whatever memory newer ones need. */
static inline void log_cache_pin(struct cached_batch *batch)
{
    batch->is_pinned = true;
}
/* They may be freed when the next batch arrives. */
void log_cache_unpin_all(struct log_cache *cache);
/* A stream begins to read from the batch. */
void log_cache_note_use(struct log_cache *cache, struct cached_batch *batch);
