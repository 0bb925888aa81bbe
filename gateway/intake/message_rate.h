/* gateway/intake/message_rate.h - detects that messages arrive so often that waking up for each one
 * costs more than processing them. Then the reader rests in between. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { MESSAGE_RATE_BUSY = 2000 /* per second */ };

/* Initially zero. */
struct message_rate {
    uint64_t counted; /* since `counted_ms` */
    uint64_t counted_from_ms;
    bool is_busy; /* at the last count */
};

/* `count` messages arrived in the turn of the loop that has ended. true: the rate of the last tenth
 * of a second is high. */
bool message_rate_is_busy(struct message_rate *rate, uint64_t count, uint64_t now_ms);
