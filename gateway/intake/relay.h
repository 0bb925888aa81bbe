/* gateway/intake/relay.h - hears the live channels of all shards by way of the intake process.
 *
 * What subscriber.h is to a worker that is alone: the same callbacks, in the same order. The intake
 * process (gateway/process/intake_process.h) has the connection to Redis and asks the rounds
 * (round.h); it passes on what it hears through broadcast.h. When it dies, or when this worker was
 * too slow and has been overtaken, hearing is lost and begins again; what was missed meanwhile is
 * in the log. Belongs to the thread of its loop. */
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
    unsigned worker; /* its seat */
    struct metrics *metrics;
    struct redis_news news; /* but for `doubt` */
};

struct relay_callbacks {
    struct subscriber_callbacks heard; /* but for `pong` */
    /* The node of these shards has said that it is `redis_ms`. */
    void (*time)(void *context, uint64_t shards, uint64_t redis_ms);
    /* A round is over, as round.h tells it; all messages that had come by then were told before. */
    void (*round_over)(void *context, uint64_t id, uint64_t shards);
};

struct relay;

/* Begins at once; all callbacks come from the loop. NULL: out of memory. */
struct relay *relay_new(const struct relay_settings *settings,
                        const struct relay_callbacks *callbacks, void *context);
/* No callback comes any more; may be called from within one. The loop must run once more to let go
 * of the handles. */
void relay_free(struct relay *relay);

bool relay_is_subscribed(const struct relay *relay);
/* The database that was found last; nothing is in it before the first. */
const struct sl_meta *relay_meta(const struct relay *relay);

/* subscriber_clock_until_ms(), or what a worker has found since. */
uint64_t relay_clock_until_ms(const struct relay *relay, uint32_t shard);
/* Tells the intake process what the shard's clock has been raised to; it may know already. */
void relay_set_clock(struct relay *relay, uint32_t shard, uint64_t until_ms);
