/* gateway/intake/live_feed.h - what comes over the live channels, put into order.
 *
 * A channel carries `<id> <previous id> <event JSON>`, written by the core's scripts, or, when it
 * begins with `{`, the JSON of a producer that only publishes. `previous id` is what makes losses
 * visible, shard by shard:
 *
 *     previous = last seen      in order
 *     previous > last seen      a gap: (last seen, previous] was never received
 *     id seen already           a duplicate, dropped
 *     id at or below last seen  and never seen: a failover lost the tail of the log, and what was
 *                               seen of it exists no more: rewound
 *
 * Pure: no sockets, no clock. It knows nothing of what is in the JSON. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "gateway/ops/metrics.h"

struct live_message {
    uint32_t shard;
    uint64_t id;          /* the cursor; 0: from a producer that only publishes, has no order */
    uint64_t previous;    /* the id before it in the shard's log; 0: none */
    uint64_t received_ms; /* clock_monotonic_ms */
    struct sl_slice json; /* untrusted */
};

enum live_gap_reason {
    LIVE_GAP_MISSED, /* still in the log, unless that has been trimmed */
    LIVE_GAP_REWOUND /* not in the log any more, though it was delivered */
};

/* Comes right before the message that showed it. */
struct live_gap {
    uint32_t shard;
    uint64_t from, to; /* event ids: exclusive, inclusive */
    enum live_gap_reason reason;
};

struct live_feed_callbacks {
    void (*message)(void *context, const struct live_message *message);
    void (*gap)(void *context, const struct live_gap *gap);
};

struct live_feed;

/* Messages whose JSON is longer than `max_event_bytes` are counted and dropped. NULL: out of
 * memory. */
struct live_feed *live_feed_new(size_t max_event_bytes, struct metrics *metrics,
                                const struct live_feed_callbacks *callbacks, void *context);
void live_feed_free(struct live_feed *feed);

/* One message of a channel. Calls back before it returns, or counts why not: 0; -EBADMSG: not from
 * a live channel, or a header that the core does not write; -EMSGSIZE: too long; -EALREADY: a
 * duplicate; -ENOMEM. */
int live_feed_take(struct live_feed *feed, struct sl_slice channel, struct sl_slice payload,
                   uint64_t now_ms);
