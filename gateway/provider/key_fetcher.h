/* gateway/provider/key_fetcher.h - keeps a file with the current key set for each source of keys.
 *
 * A set is fetched again when it is no longer fresh, according to its response and within limits;
 * and at once when a worker needs it, but not more often than `again_ms`. The file always contains
 * the last good set, whatever happens. A failed fetch is repeated after an increasing delay. It may
 * block, because it runs in a process of its own. */
#pragma once

#include <stdint.h>

#include "gateway/front/key_board.h"
#include "gateway/front/key_source.h"
#include "gateway/metrics/metrics.h"

struct key_fetcher_settings {
    const struct key_sources *sources;
    struct key_board *board;
    struct metrics *metrics;    /* the slot of this process */
    const char *ca_file;        /* NULL: the system's */
    uint64_t least_ms, most_ms; /* limits of the time between two fetches of a good set */
    uint64_t again_ms;
    uint32_t timeout_ms;
};

struct key_fetcher;

/* Reads the existing files. NULL: out of memory. */
struct key_fetcher *key_fetcher_new(const struct key_fetcher_settings *settings);
void key_fetcher_free(struct key_fetcher *fetcher);

/* Starts the fetches that are due, then waits for the network, for a worker, until `fd` is
 * readable, or for `most_ms`. */
void key_fetcher_turn(struct key_fetcher *fetcher, int fd, uint32_t most_ms);
