/* gateway/intake/live_message.h - one message of a live channel.
 *
 * It is `<id> <previous id> <event JSON>`, written by the core's scripts, or, when it begins with
 * `{`, the JSON of a producer that only publishes. `previous id` is what makes losses visible,
 * shard by shard: see shard_order.h. Pure, and without knowledge of what is in the JSON. */
#pragma once

#include <stdint.h>

#include "base/slice.h"

/* What the body of a message is. */
enum live_form {
    LIVE_JSON,   /* untrusted */
    LIVE_EVENT,  /* event_bytes() of what the intake process has decoded */
    LIVE_REFUSED /* nothing: the intake process has refused, counted and logged it */
};

struct live_message {
    uint32_t shard;
    uint64_t id;          /* the cursor; 0: from a producer that only publishes, has no order */
    uint64_t previous;    /* the id before it in the shard's log; 0: none */
    uint64_t received_us; /* clock_monotonic_us */
    enum live_form form;
    struct sl_slice body;
};

/* Reads all but `received_us`, which stays; the body is JSON, borrowed from `payload`. 0; -EBADMSG:
 * not a live channel, or a header that the core does not write. */
int live_message_read(struct sl_slice channel, struct sl_slice payload,
                      struct live_message *ret_message);
