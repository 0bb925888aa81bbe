/* gateway/intake/shard_order.h - the events of one shard: in order, each once, none missing.
 *
 * Messages come from the live channel; each names the one before it. What that tells:
 *
 *     previous = last passed    in order: passed on at once
 *     previous > last passed    (last passed, previous] was missed: it is wanted from the log
 *     id passed already         a duplicate, dropped
 *     previous is another one   that was passed, or is older: there are two logs, since a failover
 *                               lost the tail of one, or a former master has not heard of its
 *                               successor. The log is wanted: it holds the message, and what was
 *                               passed instead exists no more (rewound); or it does not, and the
 *                               message is dropped
 *
 * While the log is wanted, what comes live is held back, up to a number of bytes; beyond it all
 * that is held is dropped and wanted from the log as well. Batches of the log are passed on as they
 * come, then what was held back. What the log does not hold any more is told as a gap, right before
 * the event behind it; so is what was rewound.
 *
 * Pure: no sockets, no clock, nothing known of the messages' bodies. */
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
    /* Id of the newest event before hearing began; 0: none. One of another shard: the newest event
     * of this one is not known, and what lies above this id is to be passed on. */
    uint64_t log_end;
    size_t max_held_bytes;
    struct metrics *metrics;
};

/* What the log gave when asked for what lies in (after, to]. */
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

/* A message of the shard. true: the log is wanted. */
bool shard_order_take(struct shard_order *order, const struct live_message *message);
/* Hearing begins again; `log_end` was the newest event before. One of another shard: that is not
 * known, as in the settings, and comes later. */
void shard_order_resume(struct shard_order *order, uint64_t log_end);

/* true: what lies in (*ret_after, *ret_to] of the log is wanted, and nothing is passed on before it
 * has come, or shard_order_give_up() was called. */
bool shard_order_wants(const struct shard_order *order, uint64_t *ret_after, uint64_t *ret_to);
/* A batch, wanted or not: one from shard_order_last() to SL_ID_MAX shows what was missed though no
 * later message tells of it. */
void shard_order_batch(struct shard_order *order, const struct log_batch *batch, uint64_t now_us);
/* What is wanted cannot be read: tells it as a gap and goes on. */
void shard_order_give_up(struct shard_order *order);

/* The newest event passed on. */
uint64_t shard_order_last(const struct shard_order *order);
