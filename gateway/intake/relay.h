/* gateway/intake/relay.h - receives the live channels of all shards by way of the intake process.
 *
 * It takes the place of subscriber.h, with the same callbacks in the same order. The intake process
 * (gateway/process/intake_process.h) is connected to Redis and makes the rounds (round.h); it
 * passes on what it receives through broadcast.h. When it dies, or when this worker was too slow
 * and was overtaken, the subscription is lost and begins again; what was missed meanwhile is in the
 * log. Belongs to the thread of its loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "gateway/intake/broadcast.h"
#include "gateway/intake/subscriber.h"
#include "gateway/metrics/metrics.h"
#include "src/model/database.h"

struct relay_settings {
    uv_loop_t *loop;
    struct broadcast *broadcast;
    unsigned worker; /* its slot */
    struct metrics *metrics;
    struct redis_state_callbacks news; /* except `doubt` */
};

struct relay_callbacks {
    struct subscriber_callbacks heard; /* except `pong` */
    /* The node of these shards has reported its time `redis_ms`. */
    void (*time)(void *context, uint64_t shards, uint64_t redis_ms);
    /* A round has ended, as in round.h; all messages that had arrived by then were passed on
     * before. */
    void (*round_over)(void *context, uint64_t id, uint64_t shards);
};

struct relay;

/* Starts at once; all callbacks are called from the loop. NULL: out of memory. */
struct relay *relay_new(const struct relay_settings *settings,
                        const struct relay_callbacks *callbacks, void *context);
/* No callback is called any more; may be called from a callback. The loop must run once more to
 * close the handles. */
void relay_free(struct relay *relay);

bool relay_is_subscribed(const struct relay *relay);
/* The database that was found last; empty before the first one. */
const struct sl_meta *relay_meta(const struct relay *relay);

/* Like subscriber_clock_until_ms(), or what a worker has found since. */
uint64_t relay_clock_until_ms(const struct relay *relay, uint32_t shard);
/* Reports to the intake process to which value the shard's clock was raised; it may know
 * already. */
void relay_set_clock(struct relay *relay, uint32_t shard, uint64_t until_ms);
