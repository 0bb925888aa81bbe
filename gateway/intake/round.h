/* gateway/intake/round.h - what Redis published before a moment has been heard: asked again and
 * again.
 *
 * A round is two questions: TIME on the connection for commands, and when that is answered PING on
 * the one that is subscribed. Redis does one thing at a time. So what was published before it said
 * its time was sent before the pong, and every event that it mints later has that time or a later
 * one. A clock that steps back breaks that; whoever is asked for `ids_ms` sees it.
 *
 * In a cluster each node has rounds of its own, for the shards that it has: one that does not
 * answer keeps the rounds of no other waiting. Of each node one is under way at most. Belongs to
 * the thread of its loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/intake/subscriber.h"

enum {
    ROUND_UNSURE_MS = 100, /* while a round would tell something, though nobody waits for it */
    ROUND_QUIET_MS = 1000  /* while it would not: has the clock stepped back? */
};

struct round_callbacks {
    /* The node of these shards says that it is `time_ms`: the time that ids are minted by from then
     * on, or a later one. Both are Unix times; see src/database/database_clock.h. */
    uint64_t (*ids_ms)(void *context, uint64_t shards, uint64_t time_ms);
    /* The round of a node is over: of `shards`, a bit for each, every event has come whose id is at
     * or below `id`, minted before the millisecond in which the node told its time. They are those
     * of its shards that are heard, and were when the round began. */
    void (*over)(void *context, uint64_t id, uint64_t shards);
};

struct round;

/* `settings` are those of the subscriber. NULL: out of memory, or of descriptors. */
struct round *round_new(const struct subscriber_settings *settings, struct subscriber *subscriber,
                        const struct round_callbacks *callbacks, void *context);
/* After the commands, which answer what is under way. The loop must run once more. */
void round_free(struct round *round);

/* A round is wanted that finds the clock of Redis at the Unix time `time_ms` or later: it begins
 * then, if that can be told, and not sooner than a millisecond after the last one, at all nodes of
 * which none is under way. When one is over is the time to want another. Without effect while
 * nothing is heard. */
void round_want(struct round *round, uint64_t time_ms);
/* The same `pause_ms` after the last one began: nobody waits for it. */
void round_want_later(struct round *round, uint64_t pause_ms);
/* One is wanted just after the next full second of the clock of Redis, or at once while nothing is
 * known of that. */
void round_want_second(struct round *round);
/* What the subscriber tells: that it hears, or not any more, and pongs. A round that is under way
 * when hearing ends has no end; and the subscriber is not used any more. */
void round_set_hearing(struct round *round, bool is_hearing);
void round_pong(struct round *round, uint64_t number);
