/* tests/support/random_filter.h - filters and events made by chance, of few words and places, so
 * that they match each other often. */
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

/* Where the strings of one filter or event live. */
struct random_room {
    char bytes[1 << 16];
    size_t used;
    struct sl_slice urls[4];
};

/* A filter that is not refused (with default limits, and wide ones allowed); what of it is in
 * `room` may go then. */
struct sl_filter *random_filter(struct random *random, struct random_room *room);

/* An event of any type; its strings are in `room`. */
struct sl_event_view random_event(struct random *random, struct random_room *room);
