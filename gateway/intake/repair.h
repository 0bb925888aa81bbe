/* gateway/intake/repair.h - makes the events of each shard complete, between the subscriber and
 * delivery.
 *
 * What the live channels bring in order passes through. What was missed is read from the log, in
 * batches and before what came after it, shard by shard as shard_order.h says; a shard that waits
 * for its log does not delay the others. A shard is checked in its log at the beginning of the
 * subscription, and whenever it has been quiet for a second, so that the loss of its last message
 * is noticed, too. A message whose id lies in the future is not trusted: anybody may publish, and
 * otherwise everything that follows would be taken for old. The event is taken from the log if that
 * has it. If Redis does not answer or refuses, the log of that shard is read again after 0.1 s at
 * first, 5 s at most. Belongs to the thread of its loop. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "gateway/intake/log_reader.h"
#include "gateway/intake/shard_order.h"
#include "gateway/metrics/metrics.h"

enum {
    REPAIR_CHECK_MS = 1000,
    REPAIR_HELD_BYTES = 4 << 20,
    REPAIR_FUTURE_MS = 60000 /* how far an id may be ahead of both our clock and its shard */
};

struct repair_settings {
    uv_loop_t *loop;
    struct log_reader *log;
    struct metrics *metrics;
    size_t max_held_bytes; /* of held messages, for each shard */
    uint32_t check_ms;     /* how often quiet shards are checked */
};

struct repair_callbacks {
    struct shard_order_callbacks order;
    /* Events have come from the log, and these were all for now. */
    void (*turn_end)(void *context);
};

struct repair;

/* NULL: out of memory. */
struct repair *repair_new(const struct repair_settings *settings,
                          const struct repair_callbacks *callbacks, void *context);
/* Call it after freeing the commands; not from a callback. The loop must run once more to close the
 * handles. */
void repair_free(struct repair *repair);

/* Called by the subscriber: the end of each log before the subscription (0; -ENOMEM), the beginning
 * and end of the subscription, and each message. */
int repair_log_end(struct repair *repair, uint32_t shard, uint64_t id);
void repair_set_hearing(struct repair *repair, bool is_hearing);
/* The subscription continues, but this shard was not received until now. */
void repair_heard_again(struct repair *repair, uint32_t shard);
void repair_take(struct repair *repair, const struct live_message *message);

/* Whether an id must not be trusted, in a shard whose newest event is `last`. */
bool repair_is_in_the_future(uint64_t id, uint64_t last);

/* Whether everything sent by the shard has been passed on: nothing is wanted of its log, which has
 * been checked since the subscription began. */
bool repair_is_complete(const struct repair *repair, uint32_t shard);
