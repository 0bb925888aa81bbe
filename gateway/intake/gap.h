/* gateway/intake/gap.h - a stretch of a shard's events that nobody can give any more. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/intake/event.h"

enum gap_reason {
    GAP_RETENTION, /* trimmed from the log before it could be read */
    GAP_REWOUND,   /* delivered perhaps, but a failover has lost it: the log does not hold it */
    GAP_REDIS,     /* what the log holds there is no event of ours */
    GAP_UNLOGGED,  /* published without the log, and too long ago to be in memory; told to whoever
                      has fallen so far behind */
    GAP_LATE       /* came late, or will: a plain cursor claims them; told to who comes with one */
};

struct gap {
    uint32_t shard;
    uint64_t from, to; /* event ids: exclusive, inclusive */
    enum gap_reason reason;
};

const char *gap_reason_name(enum gap_reason reason);

/* The control message for clients, as an event without an id. `names_shard`: there are others, of
 * which nothing is missing there. The caller owns one reference; NULL:
 * out of memory. */
struct event *gap_event(const struct gap *gap, bool names_shard);
