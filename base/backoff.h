/* base/backoff.h - how long to wait before something that failed is tried again.
 *
 * Twice as long from try to try, from `first_ms` up to `most_ms`, until a try succeeds:
 *
 *     struct backoff backoff = {0};
 *
 *     while (try() < 0)
 *         sleep_ms(backoff_next_ms(&backoff, 20, 1000));      20, 40, 80, ... 1000, 1000
 *     backoff_reset(&backoff);
 *
 * Where many may have lost the same thing at once, each waits between half of that and all of it
 * (backoff_next_spread_ms()), so that they do not come back at once. */
#pragma once

#include <stdint.h>

/* Starts as {0}. */
struct backoff {
    uint32_t wait_ms; /* before the last try; 0: there was no failure since the last success */
};

static inline void backoff_reset(struct backoff *backoff)
{
    backoff->wait_ms = 0;
}

/* What backoff_next_ms() would return; changes nothing. */
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

/* Some time from half of `ms` to all of it. */
uint32_t backoff_spread_ms(uint32_t ms);

static inline uint32_t backoff_next_spread_ms(struct backoff *backoff, uint32_t first_ms,
                                              uint32_t most_ms)
{
    return backoff_spread_ms(backoff_next_ms(backoff, first_ms, most_ms));
}
