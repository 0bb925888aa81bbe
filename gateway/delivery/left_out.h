/* gateway/delivery/left_out.h - consecutive posts that a sampled stream does not send, until they
 * are reported.
 *
 * One message stands for all of them: it contains their number, and its id is the cursor of a
 * client that has everything up to there. So no cursor is after a post that was neither sent nor
 * reported. */
#pragma once

#include <stdint.h>

#include "gateway/intake/event.h"
#include "src/model/cursor.h"

/* Initialize with {0}. */
struct left_out {
    uint64_t posts;
    struct sl_cursor before; /* of a client that has everything before the first post */
    /* Of the first post: */
    uint64_t sequence, received_us;
};

/* `before`: the cursor of a client that has everything before this post. */
void left_out_add(struct left_out *left_out, const struct event *post,
                  const struct sl_cursor *before);
/* The message, for a client that has everything up to `after` then; the caller owns a reference.
 * Its position is that of the first post. `passed`: by shard, what had passed before that. NULL:
 * out of memory. */
struct event *left_out_message(const struct left_out *left_out, const struct sl_cursor *after,
                               const uint64_t *passed, uint32_t shards);
/* What had passed of the shard; 0: nothing, or unknown. */
uint64_t left_out_passed(const struct event *message, uint32_t shard);
