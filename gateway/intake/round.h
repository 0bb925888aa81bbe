/* gateway/intake/round.h - what Redis published before a moment has been heard: asked again and
 * again.
 *
 * A round is two questions: TIME on the connection for commands, and when that is answered PING on
 * the one that is subscribed; in a cluster both to each node, and the earliest time counts. Redis
 * does one thing at a time. So what was published before it said its time was sent before the pong,
 * and every event that it mints later has that time or a later one. A clock that steps back breaks
 * that; whoever is asked for `ids_ms` sees it.
 *
 * One round is under way at most. Belongs to the thread of its loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "gateway/metrics/metrics.h"
#include "gateway/redis/redis_commands.h"
#include "src/model/id.h"

enum {
    ROUND_UNSURE_MS = 100, /* while a round would tell something, though nobody waits for it */
    ROUND_QUIET_MS = 1000  /* while it would not: has the clock stepped back? */
};

struct round_callbacks {
    /* A round begins. Says of which nodes the time is to be asked: the shards of each, by bit. How
     * many nodes there are: none, while nothing is heard. */
    uint32_t (*begin)(void *context, uint64_t nodes[static SL_SHARDS_MAX]);
    /* The node of these shards says that it is `time_ms`: the time that ids are minted by from then
     * on, or a later one. Both are Unix times; see src/database/database_clock.h. */
    uint64_t (*ids_ms)(void *context, uint64_t shards, uint64_t time_ms);
    /* Asks for a pong with this number on the connection that hears all shards. 0; a negative
     * errno: there is none, or no memory. */
    int (*ping)(void *context, uint64_t number);
    /* Of the shards that are heard, and were when the round began, every event has come whose id is
     * at or below `id`: those minted before the millisecond in which Redis told its time. */
    void (*over)(void *context, uint64_t id);
};

struct round;

/* NULL: out of memory, or of descriptors. */
struct round *round_new(uv_loop_t *loop, struct redis_commands *commands, struct metrics *metrics,
                        const struct round_callbacks *callbacks, void *context);
/* After the commands, which answer what is under way. The loop must run once more. */
void round_free(struct round *round);

/* A round is wanted that finds the clock of Redis at the Unix time `time_ms` or later: it begins
 * then, if that can be told, and not sooner than a millisecond after the last one. Without effect
 * while one is under way, whose end is the time to want another, and while nothing is heard. */
void round_want(struct round *round, uint64_t time_ms);
/* The same `pause_ms` after the last one began: nobody waits for it. */
void round_want_later(struct round *round, uint64_t pause_ms);
/* All shards are heard from now on, or not any more: then the round that is under way has no end.
 */
void round_set_hearing(struct round *round, bool is_hearing);
/* The pong with this number has come. */
void round_pong(struct round *round, uint64_t number);
