/* base/backoff.h - exponential backoff: how long to wait before the next attempt.
 *
 * The wait doubles with each failure, from `first_ms` up to `most_ms`, until an attempt succeeds:
 *
 *     struct backoff backoff = {0};
 *     while (try() < 0)
 *         sleep_ms(backoff_next_ms(&backoff, 20, 1000));      20, 40, 80, ... 1000, 1000
 *     backoff_reset(&backoff);
 *
 * If many may have failed at the same time, use backoff_next_spread_ms(): each waits between half
 * of that time and all of it, so that they do not retry at the same moment. */
#pragma once

#include <stdint.h>

/* Initialize with {0}. */
struct backoff {
    uint32_t wait_ms; /* before the last attempt; 0: no failure since the last success */
};

static inline void backoff_reset(struct backoff *backoff)
{
    backoff->wait_ms = 0;
}

/* The result of the next backoff_next_ms(), without advancing. */
static inline uint32_t backoff_peek_ms(const struct backoff *backoff, uint32_t first_ms,
                                       uint32_t most_ms)
{
    if (backoff->wait_ms == 0)
        return first_ms;
    return backoff->wait_ms < most_ms / 2 ? backoff->wait_ms * 2 : most_ms;
}

static inline uint32_t backoff_next_ms(struct backoff *backoff, uint32_t first_ms, uint32_t most_ms)
{
    backoff->wait_ms = backoff_peek_ms(backoff, first_ms, most_ms);
    return backoff->wait_ms;
}

/* A random time between half of `ms` and `ms`. */
uint32_t backoff_spread_ms(uint32_t ms);

static inline uint32_t backoff_next_spread_ms(struct backoff *backoff, uint32_t first_ms,
                                              uint32_t most_ms)
{
    return backoff_spread_ms(backoff_next_ms(backoff, first_ms, most_ms));
}
