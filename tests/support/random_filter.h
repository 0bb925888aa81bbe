/* tests/support/random_filter.h - random filters and events with few words and places, so that they
 * often match each other. */
#pragma once

#include <stdint.h>

#include "base/stable_hash.h"
#include "filters/event_view.h"
#include "filters/filter.h"

struct random {
    uint64_t state;
};

static inline uint32_t random_below(struct random *random, uint32_t end)
{
    return (uint32_t)((stable_hash(random->state++) >> 32) * end >> 32);
}

static inline bool random_one_in(struct random *random, uint32_t n)
{
    return random_below(random, n) == 0;
}

/* Holds the strings of one filter or event. */
struct random_room {
    char bytes[1 << 16];
    size_t used;
    struct sl_slice urls[4];
};

/* Returns a filter that is not refused (with default limits, and wide ones allowed); afterwards
 * `room` may be freed. */
struct sl_filter *random_filter(struct random *random, struct random_room *room);

/* Returns an event of any type; its strings are in `room`. */
struct sl_event_view random_event(struct random *random, struct random_room *room);
