#include "gateway/intake/message_rate.h"

enum { STRETCH_MS = 100 };

bool message_rate_is_busy(struct message_rate *rate, uint64_t count, uint64_t now_ms)
{
    uint64_t ms = now_ms - rate->counted_from_ms;

    rate->counted += count;
    if (ms < STRETCH_MS)
        return rate->is_busy;
    rate->is_busy = rate->counted * 1000 / ms >= MESSAGE_RATE_BUSY;
    rate->counted = 0;
    rate->counted_from_ms = now_ms;
    return rate->is_busy;
}
