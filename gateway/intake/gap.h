/* gateway/intake/gap.h - a gap: a range of events of a shard that can no longer be delivered. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/intake/event.h"

enum gap_reason {
    GAP_RETENTION, /* trimmed from the log before it could be read */
    GAP_REWOUND,   /* possibly delivered, but lost by a failover: the log does not have it */
    GAP_REDIS,     /* the log has something there that is not an event of ours */
    GAP_UNLOGGED,  /* published without the log, and no longer in memory; reported to clients that
                      are this far behind */
    GAP_LATE       /* arrived late, or will: a plain cursor includes it; reported to clients that
                      resume with such a cursor */
};

struct gap {
    uint32_t shard;
    uint64_t from, to; /* event ids: exclusive, inclusive */
    enum gap_reason reason;
};

const char *gap_reason_name(enum gap_reason reason);

/* The control message for clients, as an event without an id. `names_shard`: there are other
 * shards, of which nothing is missing. The caller owns one reference; NULL: out of memory. */
struct event *gap_event(const struct gap *gap, bool names_shard);
