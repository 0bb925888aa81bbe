/* gateway/intake/live_message.h - parses a message of a live channel.
 *
 * It is `<id> <previous id> <event JSON>`, written by the core's scripts; or, if it begins with
 * `{`, the JSON of a producer that only publishes. `previous id` makes losses visible, for each
 * shard: see shard_order.h. A pure function, which does not parse the JSON. */
#pragma once

#include <stdint.h>

#include "base/slice.h"

/* The form of the body of a message. */
enum live_form {
    LIVE_JSON,   /* untrusted */
    LIVE_EVENT,  /* event_bytes() of the event decoded by the intake process */
    LIVE_REFUSED /* nothing: the intake process has refused, counted and logged it */
};

struct live_message {
    uint32_t shard;
    uint64_t id;          /* the cursor; 0: from a producer that only publishes, without order */
    uint64_t previous;    /* the id before it in the shard's log; 0: none */
    uint64_t received_us; /* clock_monotonic_us() */
    enum live_form form;
    struct sl_slice body;
};

/* Sets all fields but `received_us`. The body is JSON, borrowed from `payload`. 0; -EBADMSG: not a
 * live channel, or not a header of the core. */
int live_message_read(struct sl_slice channel, struct sl_slice payload,
                      struct live_message *ret_message);
