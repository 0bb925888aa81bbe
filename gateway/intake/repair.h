/* gateway/intake/repair.h - between the subscriber and whoever takes the events: nothing missing.
 *
 * What the live channels bring in order goes straight through. What was missed is read from the
 * log, in batches and before what came after it, shard by shard as shard_order.h says; a shard that
 * waits for its log does not keep the others waiting. A shard is looked up in its log when hearing
 * begins, and whenever it has been quiet for a second, so that the loss of its last message is
 * found too. A message whose id lies in the future is not believed: anybody may publish, and who
 * believed it would hold what follows for old. What the log has is taken from there. When Redis
 * does not answer or refuses to, the log of that shard is asked again after 0.1 s at first, 5 s at
 * most. Belongs to the thread of its loop. */
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
    REPAIR_FUTURE_MS = 60000 /* how far ahead of our clock and of its shard an id may lie */
};

struct repair_settings {
    uv_loop_t *loop;
    struct log_reader *log;
    struct metrics *metrics;
    size_t max_held_bytes; /* of messages held back, a shard */
    uint32_t check_ms;     /* how often quiet shards are looked up */
};

struct repair_callbacks {
    struct shard_order_callbacks order;
    /* Events have come from the log, and for now these were all. */
    void (*turn_end)(void *context);
};

struct repair;

/* NULL: out of memory. */
struct repair *repair_new(const struct repair_settings *settings,
                          const struct repair_callbacks *callbacks, void *context);
/* After the commands that its reader uses; not from within a callback. The loop must run once more
 * to let go of the handles. */
void repair_free(struct repair *repair);

/* What the subscriber tells: where each log ends before hearing begins (0; -ENOMEM), that it has
 * begun, or ended, and each message. */
int repair_log_end(struct repair *repair, uint32_t shard, uint64_t id);
void repair_set_hearing(struct repair *repair, bool is_hearing);
/* Hearing has been going on, but not of this shard until now. */
void repair_heard_again(struct repair *repair, uint32_t shard);
void repair_take(struct repair *repair, const struct live_message *message);

/* Not to be believed, in a shard whose newest event is `last`. */
bool repair_is_in_the_future(uint64_t id, uint64_t last);

/* Whatever was sent of the shard has been handed on: nothing is wanted of its log, which has been
 * looked up since hearing began. */
bool repair_is_complete(const struct repair *repair, uint32_t shard);
