/* base/backoff.h - how soon to start again something that ended.
 *
 * At once when it had run for a while, then after 100, 200, 400 ms and so on up to 5 s for as long
 * as it keeps ending early. */
#pragma once

#include <stdint.h>

enum { BACKOFF_FIRST_MS = 100, BACKOFF_MOST_MS = 5000, BACKOFF_FORGIVEN_AFTER_MS = 10000 };

struct backoff {
    unsigned early_ends; /* in a row; starts at 0 */
};

static inline uint64_t backoff_next_ms(struct backoff *backoff, uint64_t ran_ms)
{
    uint64_t wait_ms;

    if (ran_ms >= BACKOFF_FORGIVEN_AFTER_MS)
        backoff->early_ends = 0;
    if (backoff->early_ends == 0)
        wait_ms = 0;
    else if (backoff->early_ends < 7)
        wait_ms = (uint64_t)BACKOFF_FIRST_MS << (backoff->early_ends - 1);
    else
        wait_ms = BACKOFF_MOST_MS;
    backoff->early_ends++;
    return wait_ms;
}
