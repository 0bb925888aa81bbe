/* gateway/process/restart_delay.h - how soon to start a process again that ended.
 *
 * At once when it had run for a while, then after 100, 200, 400 ms and so on up to 5 s for as long
 * as it keeps ending early. */
#pragma once

#include "base/backoff.h"

enum { RESTART_FIRST_MS = 100, RESTART_MOST_MS = 5000, RESTART_FORGIVEN_AFTER_MS = 10000 };

/* Starts as {0}. */
struct restart_delay {
    struct backoff backoff;
    unsigned early_ends; /* in a row */
};

static inline uint64_t restart_delay_next_ms(struct restart_delay *delay, uint64_t ran_ms)
{
    if (ran_ms >= RESTART_FORGIVEN_AFTER_MS)
        *delay = (struct restart_delay){.early_ends = 0};
    if (delay->early_ends++ == 0)
        return 0;
    return backoff_next_ms(&delay->backoff, RESTART_FIRST_MS, RESTART_MOST_MS);
}
