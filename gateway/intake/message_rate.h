/* gateway/intake/message_rate.h - do so many messages come that waking up for each costs more than
 * they do? Then whoever reads them rests in between. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { MESSAGE_RATE_BUSY = 2000 /* a second */ };

/* All zero: nothing has come yet. */
struct message_rate {
    uint64_t counted; /* since then */
    uint64_t counted_from_ms;
    bool is_busy; /* when it was counted last */
};

/* `count` have come in the turn of the loop that is over. true: so many come, as far as the last
 * tenth of a second tells. */
bool message_rate_is_busy(struct message_rate *rate, uint64_t count, uint64_t now_ms);
