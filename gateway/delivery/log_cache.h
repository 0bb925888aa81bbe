/* gateway/delivery/log_cache.h - batches of the shards' logs, read and decoded once for all who
 * need them.
 *
 * A batch is kept until newer ones need the memory, and serves every cursor that lies in it. One
 * batch of a shard is under way at a time, so that cursors near each other meet on the same
 * batches. When Redis does not answer it is asked again, after 0.1 s at first, 5 s at most. Belongs
 * to the thread of its loop. */
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

/* log_reader_read(), or what a test has in its place. */
typedef int (*log_read_fn)(struct log_reader *reader, uint32_t shard, uint64_t after, uint64_t to,
                           log_batch_fn done, void *owner);

/* log_reader_read_back(), likewise. */
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
    uint32_t retry_ms; /* the first wait after a failure */
};

/* What lies behind `after`, in the order of ids. */
struct cached_batch {
    struct segment *segment;
    uint64_t number; /* in the order in which batches were asked for, from 1 */
    uint32_t shard;
    uint64_t after;
    uint64_t end;   /* a cursor from `after` to below `end` finds here what follows it; SL_ID_MAX:
                       there was no more in the log */
    uint64_t known; /* the newest event of the shard that had passed when this was asked for */
    bool is_pinned; /* stays until log_cache_unpin_all() */
    bool is_unreadable; /* the log holds something there that is no event of ours */
    bool is_trimmed;    /* what came before its first entry is missing, and the log holds nothing up
                           to `after` any more. Otherwise what is missing has been taken out of it */
    struct list_node node, in_shard;
};

/* A batch has come, or (NULL) may be asked for again after a failure. */
typedef void (*log_cache_fn)(void *owner, uint32_t shard, struct cached_batch *batch);

/* The batch that was asked for with this id, or (NULL) there is nothing, or it cannot be read. */
typedef void (*log_cache_back_fn)(void *owner, uint32_t shard, uint64_t to,
                                  const struct cached_batch *batch);

/* NULL: out of memory. */
struct log_cache *log_cache_new(const struct log_cache_settings *settings);
/* After the reader has answered everything. The loop must run once more to let go of the timer. */
void log_cache_free(struct log_cache *cache);
void log_cache_on_change(struct log_cache *cache, log_cache_fn changed, log_cache_back_fn came_back,
                         void *owner);

/* The batch for this cursor; it may have no entry above it. NULL: not here. Valid until the loop
 * comes round. */
struct cached_batch *log_cache_find(struct log_cache *cache, uint32_t shard, uint64_t after);
/* Reads it, unless another batch of the shard is under way or Redis is to be left alone for now:
 * then there will be a change, too. */
void log_cache_ask(struct log_cache *cache, uint32_t shard, uint64_t after, uint64_t known);
/* A batch with the events up to this id, going back from it. NULL: not here. Valid until the loop
 * comes round. */
struct cached_batch *log_cache_find_back(struct log_cache *cache, uint32_t shard, uint64_t to);
/* Reads the batch that ends with this id, or with the newest before it, unless another such batch
 * of the shard is under way. One that cannot be read is not asked for again. 0: there will be an
 * answer; -ENOMEM. */
int log_cache_ask_back(struct log_cache *cache, uint32_t shard, uint64_t to);
/* How many have been asked for: who wants to know what the log holds now needs a later one. */
uint64_t log_cache_asked(const struct log_cache *cache);
/* It says less than the log by now. */
void log_cache_drop(struct log_cache *cache, struct cached_batch *batch);
/* A batch that is pinned stays, whatever memory the newer ones take. */
static inline void log_cache_pin(struct cached_batch *batch)
{
    batch->is_pinned = true;
}
/* They may go when the next comes. */
void log_cache_unpin_all(struct log_cache *cache);
/* A stream begins to read from the batch. */
void log_cache_note_use(struct log_cache *cache, struct cached_batch *batch);
