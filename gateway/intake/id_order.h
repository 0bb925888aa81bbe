/* gateway/intake/id_order.h - the events of all shards, in the order of their ids.
 *
 * A cursor is one id, and says that everything at or below it was had, of all shards. So events are
 * handed on in the order of their ids over all shards, not in that of their arrival.
 *
 * Each shard has a watermark: nothing of it at or below that id is still to come. It rises with
 * each of the shard's events, for shard_order.h has put those in order, and with each round
 * (round.h), which asks Redis what time it is. What comes is held, in a queue for each shard, until
 * the lowest of the watermarks has reached its id. That one is the watermark of the whole: it never
 * falls, and everything at or below it has been handed on.
 *
 * A gap is handed on where it begins, behind the event before it: whoever has an id of another
 * shard that lies in it has been told.
 *
 * A shard of which something is missing, and nothing comes for `wait_ms` while others wait, is left
 * behind: the others go on without it. So is one for which an event has waited that long because
 * its id is ahead of the clock of Redis, and whoever is lowest while too much is held. Only time in
 * which rounds come counts: while Redis is silent nobody is waited for but Redis. A shard is
 * behind, too, when something of it comes with an id at or below the watermark: the clock of Redis
 * has stepped back, or a failover has rewound the shard. Such an event is late, and handed on as it
 * comes. As soon as a shard that is behind has reached the watermark it is whole again.
 *
 * With one shard, or `wait_ms` 0, everything is handed on as it comes, and nothing else is told.
 *
 * Pure: no sockets, no clock, no timers. Belongs to one thread. */
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
    ORDER_PASS, /* an event that was refused: nobody gets it */
    ORDER_MISS, /* an event that there was no memory for */
    ORDER_GAP
};

/* One thing that happened in a shard. */
struct order_item {
    enum order_kind kind;
    uint32_t shard;
    uint64_t id;            /* a gap's `to`; 0: from outside the log, handed on at once */
    uint64_t previous;      /* the one before it in the shard; a gap's `from` */
    enum gap_reason reason; /* of a gap */
    struct event *event;    /* of an event; else NULL */
};

/* Why a shard is behind: in the order of the metrics. */
enum order_behind {
    ORDER_BEHIND_WAIT,   /* it has kept the others waiting for `wait_ms` */
    ORDER_BEHIND_MEMORY, /* too much was held */
    ORDER_BEHIND_LATE    /* its ids are at or below the watermark */
};

struct id_order_callbacks {
    /* The item's event, whose `is_late` is set by then, is borrowed. */
    void (*pass)(void *context, const struct order_item *item);
    /* Everything at or below `id` has passed, of all shards that are not behind. */
    void (*watermark)(void *context, uint64_t id);
    /* Of this shard only what is at or below `low` has passed. */
    void (*behind)(void *context, uint32_t shard, uint64_t low, enum order_behind why);
    /* The same of a shard that is behind already. It falls when its clock steps back. */
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
/* What is held is dropped: it has not passed. */
void id_order_free(struct id_order *order);

/* What comes of the shard comes after the event `id` (0: from the first one on). Said of each
 * shard, from 0 on, before anything of any of them comes. */
void id_order_begin_shard(struct id_order *order, uint32_t shard, uint64_t id);

/* The functions below call back before they return; times are those of clock_monotonic_us(). */

/* Takes a reference to the event if it holds it. */
void id_order_take(struct id_order *order, const struct order_item *item, uint64_t now_us);
/* The shard is away from the beginning: it is not waited for. */
void id_order_leave_behind(struct id_order *order, uint32_t shard, uint64_t now_us);

/* A round is over: of the shards in `complete`, a bit for each, everything at or below `id` has
 * come. Of the others something is missing, or the round was not theirs: if nothing of them rises
 * they are waited for. */
void id_order_end_round(struct id_order *order, uint64_t id, uint64_t complete, uint64_t now_us);

/* The last round is looked at again, for what has become complete since. It says nothing of how
 * long anybody has waited: Redis may have been silent since. */
void id_order_look_again(struct id_order *order, uint64_t id, uint64_t complete, uint64_t now_us);

/* The smallest id that waits for a round; 0: none does. */
uint64_t id_order_first_held(const struct id_order *order);
/* Events are put in order: there are several shards, and `wait_ms` is not 0. */
bool id_order_is_ordering(const struct id_order *order);
/* Nothing waits, and yet a round would tell something: there has been none, or a shard is behind.
 */
bool id_order_is_unsure(const struct id_order *order);
