/* gateway/intake/shard_order.h - the events of one shard: in order, without duplicates or losses.
 *
 * Messages arrive from the live channel; each names the one before it. This gives:
 *
 *     previous = last passed    in order: passed on at once
 *     previous > last passed    (last passed, previous] was missed: it is wanted from the log
 *     id passed already         a duplicate, dropped
 *     other previous            passed before, or older: there are two logs, because a failover
 *                               lost the tail of one, or a former master has not heard of its
 *                               successor. The log is wanted: if it has the message, what was
 *                               passed instead no longer exists (rewound); if not, the message
 *                               is dropped
 *
 * While the log is wanted, live messages are held, up to a number of bytes; beyond that all held
 * messages are dropped and wanted from the log as well. Batches of the log are passed on as they
 * arrive, then the held messages. What the log no longer has is reported as a gap, right before the
 * event after it; so is what was rewound.
 *
 * Pure functions: no sockets, no clock, and no knowledge of the messages' bodies. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/intake/gap.h"
#include "gateway/intake/live_message.h"
#include "gateway/metrics/metrics.h"
#include "src/database/event_log.h"

struct shard_order_callbacks {
    void (*event)(void *context, const struct live_message *message);
    void (*gap)(void *context, const struct gap *gap);
};

struct shard_order_settings {
    uint32_t shard;
    /* Id of the newest event before the subscription; 0: none. If it belongs to another shard, the
     * newest event of this one is unknown, and everything above this id is passed on. */
    uint64_t log_end;
    size_t max_held_bytes;
    struct metrics *metrics;
};

/* What the log returned for (after, to]. */
struct log_batch {
    uint64_t after, to;
    const struct sl_event_log_entry *entries;
    size_t count;
    bool is_full; /* there may be more */
};

struct shard_order;

/* NULL: out of memory. */
struct shard_order *shard_order_new(const struct shard_order_settings *settings,
                                    const struct shard_order_callbacks *callbacks, void *context);
void shard_order_free(struct shard_order *order);

/* The functions below call back before they return. */

/* Takes a message of the shard. true: the log is wanted. */
bool shard_order_take(struct shard_order *order, const struct live_message *message);
/* The subscription begins again; `log_end` was the newest event before. If it belongs to another
 * shard, the newest event is unknown, as in the settings, and is reported later. */
void shard_order_resume(struct shard_order *order, uint64_t log_end);

/* true: (*ret_after, *ret_to] of the log is wanted, and nothing is passed on before it has arrived,
 * or shard_order_give_up() was called. */
bool shard_order_wants(const struct shard_order *order, uint64_t *ret_after, uint64_t *ret_to);
/* Takes a batch, wanted or not: one from shard_order_last() to SL_ID_MAX shows what was missed
 * although no later message tells. */
void shard_order_batch(struct shard_order *order, const struct log_batch *batch, uint64_t now_us);
/* What is wanted cannot be read: reports it as a gap and continues. */
void shard_order_give_up(struct shard_order *order);

/* The newest event passed on. */
uint64_t shard_order_last(const struct shard_order *order);
