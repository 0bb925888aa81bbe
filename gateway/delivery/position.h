/* gateway/delivery/position.h - an exact position in the events of all shards.
 *
 * It is one id for all shards, and a lower one for each shard that is behind. Clients are given it
 * as a cursor (src/model/cursor.h). What has passed here has a position, and so has a client that
 * catches up. A plain value; belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/model/cursor.h"

struct position {
    uint64_t id;     /* everything up to it is included, of shards that are not behind */
    uint64_t behind; /* shards (bits) that are behind */
    uint64_t low[SL_SHARDS_MAX]; /* of those: everything up to it is included; below `id` */
};

/* The id up to which everything of this shard is included. */
uint64_t position_of_shard(const struct position *position, uint32_t shard);
struct sl_cursor position_cursor(const struct position *position);

void position_set(struct position *position, const struct sl_cursor *cursor);
/* Includes everything that `cursor` includes, in each shard. */
void position_reach(struct position *position, const struct sl_cursor *cursor);
/* Advances to the event `id` of this shard, which is the next of all shards except those in `held`
 * (bits): these stay where they are, or at lows[shard] if that is higher. */
void position_pass(struct position *position, uint32_t shard, uint64_t id, uint64_t held,
                   const uint64_t *lows);
/* Includes everything of this shard up to `id`. */
void position_raise_shard(struct position *position, uint32_t shard, uint64_t id);
/* Includes nothing of this shard after `low`. */
void position_lower_shard(struct position *position, uint32_t shard, uint64_t low);

static inline bool position_is_plain(const struct position *position)
{
    return position->behind == 0;
}
