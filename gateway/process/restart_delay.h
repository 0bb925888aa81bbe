/* gateway/process/restart_delay.h - the delay before a process that ended is restarted.
 *
 * None if it had run for a while; otherwise 100, 200, 400 ms and so on up to 5 s as long as it
 * keeps ending early. */
#pragma once

#include "base/backoff.h"

enum { RESTART_FIRST_MS = 100, RESTART_MOST_MS = 5000, RESTART_FORGIVEN_AFTER_MS = 10000 };

/* Initialize with {0}. */
struct restart_delay {
    struct backoff backoff;
    unsigned early_ends; /* consecutive */
};

static inline uint64_t restart_delay_next_ms(struct restart_delay *delay, uint64_t ran_ms)
{
    if (ran_ms >= RESTART_FORGIVEN_AFTER_MS)
        *delay = (struct restart_delay){.early_ends = 0};
    if (delay->early_ends++ == 0)
        return 0;
    return backoff_next_ms(&delay->backoff, RESTART_FIRST_MS, RESTART_MOST_MS);
}
