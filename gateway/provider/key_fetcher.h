/* gateway/provider/key_fetcher.h - keeps a file up to date for each source of keys.
 *
 * A set is fetched when the one before it has grown old, by what its answer said and within bounds;
 * at once when a worker wants it, but not more often than `again_ms`. Whatever an answer is worth, a
 * file only ever holds a good set: the last one. What fails is tried again after a growing delay.
 * Blocks nobody: it has a process of its own. */
#pragma once

#include <stdint.h>

#include "gateway/front/key_board.h"
#include "gateway/front/key_source.h"
#include "gateway/metrics/metrics.h"

struct key_fetcher_settings {
    const struct key_sources *sources;
    struct key_board *board;
    struct metrics *metrics; /* our slot */
    const char *ca_file;     /* NULL: the system's */
    uint64_t least_ms, most_ms; /* between two fetches of a set that is good */
    uint64_t again_ms;
    uint32_t timeout_ms;
};

struct key_fetcher;

/* Looks at the files that are there. NULL: out of memory. */
struct key_fetcher *key_fetcher_new(const struct key_fetcher_settings *settings);
void key_fetcher_free(struct key_fetcher *fetcher);

/* Begins what is due, then waits for the network, for a worker, for `fd`, or for `most_ms`. */
void key_fetcher_turn(struct key_fetcher *fetcher, int fd, uint32_t most_ms);
