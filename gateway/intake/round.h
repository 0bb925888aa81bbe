/* gateway/intake/round.h - determines up to which time everything published by Redis has been
 * received.
 *
 * A round consists of two requests: TIME on the connection for commands, and when that is answered
 * PING on the subscribed connection. Redis executes one command at a time. So what was published
 * before the time was read was sent before the pong, and every event minted later has that time or
 * a later one. This does not hold if the clock is set back, which the callback `ids_ms` can detect.
 *
 * In a cluster each node has its own rounds, for its shards: one that does not answer does not
 * delay those of others. At most one round of a node is outstanding. Belongs to the thread of its
 * loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/intake/subscriber.h"

enum { ROUND_UNSURE_MS = 100 }; /* while a round would be useful, though nothing waits for it */

struct round_callbacks {
    /* The node of these shards reports the time `time_ms`. Returns the time that ids minted from
     * then on have at least. Both are Unix times; see src/database/database_clock.h. */
    uint64_t (*ids_ms)(void *context, uint64_t shards, uint64_t time_ms);
    /* The round of a node has ended: of `shards`, as bits, every event has arrived whose id is at
     * or below `id`, which is the last one before the millisecond that the node reported. They are
     * those of its shards that are received, and were when the round began. */
    void (*over)(void *context, uint64_t id, uint64_t shards);
};

struct round;

/* `settings` are those of the subscriber. NULL: out of memory or descriptors. */
struct round *round_new(const struct subscriber_settings *settings, struct subscriber *subscriber,
                        const struct round_callbacks *callbacks, void *context);
/* Call it after freeing the commands, which answer what is outstanding. The loop must run once
 * more. */
void round_free(struct round *round);

/* Requests a round that finds the clock of Redis at the Unix time `time_ms` or later. It begins
 * then, if that can be predicted, and not sooner than a millisecond after the last one, at all
 * nodes without an outstanding round. Request the next one after it has ended. No effect while
 * nothing is subscribed. */
void round_want(struct round *round, uint64_t time_ms);
/* Requests a round `pause_ms` after the beginning of the last one, when nothing waits for it. */
void round_want_later(struct round *round, uint64_t pause_ms);
/* Requests a round just after the next full second of the clock of Redis, or at once while that is
 * unknown. */
void round_want_second(struct round *round);
/* Called by the subscriber: the beginning and end of the subscription, and pongs. A round that is
 * outstanding when the subscription ends has no end, and the subscriber is not used any more. */
void round_set_hearing(struct round *round, bool is_hearing);
void round_pong(struct round *round, uint64_t number);
