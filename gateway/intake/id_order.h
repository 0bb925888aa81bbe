/* gateway/intake/id_order.h - passes on the events of all shards in the order of their ids.
 *
 * A cursor is a single id and means that everything at or below it has been received, of all
 * shards. So events are passed on in the order of their ids over all shards, not in that of their
 * arrival.
 *
 * Each shard has a watermark: nothing of it at or below that id is still to come. It rises with
 * each of the shard's events, which shard_order.h has already put in order, and with each round
 * (round.h), which asks Redis for its time. Arriving events are held in a queue for each shard
 * until the lowest of the watermarks has reached their id. That is the watermark of the whole: it
 * never falls, and everything at or below it has been passed on.
 *
 * A gap is passed on where it begins, after the event before it: so a client whose id, of another
 * shard, lies within the gap has been told of it.
 *
 * A shard is left behind if something of it is missing and nothing arrives for `wait_ms` while
 * others wait: they continue without it. So is one for which an event has waited that long because
 * its id is ahead of the clock of Redis, and the lowest shard when too much is held. Only time in
 * which rounds arrive counts: while Redis is silent, the silence is not attributed to a shard. A
 * shard is also behind when something of it arrives with an id at or below the watermark, because
 * the clock of Redis was set back, or a failover has rewound the shard. Such an event is late, and
 * passed on when it arrives. When a shard that is behind has reached the watermark, it is complete
 * again.
 *
 * With one shard, or `wait_ms` 0, everything is passed on as it arrives, and nothing else is
 * reported.
 *
 * Pure functions: no sockets, clock or timers. Belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/intake/event.h"
#include "gateway/intake/gap.h"
#include "gateway/metrics/metrics.h"

#define ID_ORDER_FOREVER UINT64_MAX

enum { ID_ORDER_HELD_BYTES = 32 << 20 };

enum order_kind {
    ORDER_EVENT,
    ORDER_PASS, /* an event that was refused: nobody receives it */
    ORDER_MISS, /* an event for which there was no memory */
    ORDER_GAP
};

/* Something that happened in a shard. */
struct order_item {
    enum order_kind kind;
    uint32_t shard;
    uint64_t id;            /* a gap's `to`; 0: from outside the log, passed on at once */
    uint64_t previous;      /* the id before it in the shard; a gap's `from` */
    enum gap_reason reason; /* of a gap */
    struct event *event;    /* of an event; otherwise NULL */
};

/* Why a shard is behind, in the order of the metrics. */
enum order_behind {
    ORDER_BEHIND_WAIT,   /* the others have waited for it for `wait_ms` */
    ORDER_BEHIND_MEMORY, /* too much was held */
    ORDER_BEHIND_LATE    /* its ids are at or below the watermark */
};

struct id_order_callbacks {
    /* The item's event, whose `is_late` is set by now, is borrowed. */
    void (*pass)(void *context, const struct order_item *item);
    /* Everything at or below `id` has passed, of all shards that are not behind. */
    void (*watermark)(void *context, uint64_t id);
    /* Of this shard only what is at or below `low` has passed. */
    void (*behind)(void *context, uint32_t shard, uint64_t low, enum order_behind why);
    /* The same for a shard that is already behind. `low` falls when its clock is set back. */
    void (*low)(void *context, uint32_t shard, uint64_t low);
    void (*whole)(void *context, uint32_t shard);
};

struct id_order_settings {
    uint64_t wait_ms; /* 0: no order between shards; or ID_ORDER_FOREVER */
    size_t max_held_bytes;
    struct metrics *metrics;
};

struct id_order;

/* NULL: out of memory. */
struct id_order *id_order_new(const struct id_order_settings *settings,
                              const struct id_order_callbacks *callbacks, void *context);
/* Held items are dropped without passing. */
void id_order_free(struct id_order *order);

/* The shard's items begin after the event `id` (0: with the first one). Must be called for each
 * shard, from 0 on, before any items. */
void id_order_begin_shard(struct id_order *order, uint32_t shard, uint64_t id);

/* The functions below call back before they return. Times are those of clock_monotonic_us(). */

/* Adds a reference to the event if it holds the item. */
void id_order_take(struct id_order *order, const struct order_item *item, uint64_t now_us);
/* The shard is away from the beginning: it is not waited for. */
void id_order_leave_behind(struct id_order *order, uint32_t shard, uint64_t now_us);

/* A round has ended: of the shards in `complete`, as bits, everything at or below `id` has arrived.
 * Of the others something is missing, or the round was not theirs; if nothing of them rises they
 * are being waited for. */
void id_order_end_round(struct id_order *order, uint64_t id, uint64_t complete, uint64_t now_us);

/* Evaluates the last round again, for shards that have become complete since. It does not count as
 * waiting time, because Redis may have been silent since. */
void id_order_look_again(struct id_order *order, uint64_t id, uint64_t complete, uint64_t now_us);

/* The smallest id that waits for a round; 0: none does. */
uint64_t id_order_first_held(const struct id_order *order);
/* Whether events are put in order: there are several shards, and `wait_ms` is not 0. */
bool id_order_is_ordering(const struct id_order *order);
/* Nothing waits, but a round would be useful: there has been none, or a shard is behind. */
bool id_order_is_unsure(const struct id_order *order);
