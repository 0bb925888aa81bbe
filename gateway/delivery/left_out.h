/* gateway/delivery/left_out.h - posts in a row that a sampled stream leaves out, until it is told.
 *
 * One message takes the place of all of them: it says how many, and its id is the cursor of who has
 * everything up to there. So a cursor never lies behind a post that was neither sent nor told. */
#pragma once

#include <stdint.h>

#include "gateway/intake/event.h"
#include "src/model/cursor.h"

/* Begins as {0}. */
struct left_out {
    uint64_t posts;
    struct sl_cursor before; /* of who has everything before the first of them */
    /* Of that: */
    uint64_t sequence, received_us;
};

/* `before`: of who has everything before this post. */
void left_out_add(struct left_out *left_out, const struct event *post,
                  const struct sl_cursor *before);
/* The message, for who has everything up to `after` then; the caller owns one reference. It stands
 * where the first of the posts does. `passed`: of each of `shards`, what had passed before that.
 * NULL: out of memory. */
struct event *left_out_message(const struct left_out *left_out, const struct sl_cursor *after,
                               const uint64_t *passed, uint32_t shards);
/* What had passed of the shard; 0: nothing, or the message does not say. */
uint64_t left_out_passed(const struct event *message, uint32_t shard);
