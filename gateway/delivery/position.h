/* gateway/delivery/position.h - how far somebody has come in the events of all shards, exactly.
 *
 * One id for all shards, and a lower one for each that is behind. A cursor (src/model/cursor.h) is
 * what clients are given of it. What has passed here has a position, and so has a client that
 * catches up. A plain value; belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/model/cursor.h"

struct position {
    uint64_t id;                 /* everything up to there, of the shards that are not behind */
    uint64_t behind;             /* a bit for each shard that is */
    uint64_t low[SL_SHARDS_MAX]; /* of those: everything up to there; below `id` */
};

/* Of this shard everything up to there. */
uint64_t position_of_shard(const struct position *position, uint32_t shard);
struct sl_cursor position_cursor(const struct position *position);

void position_set(struct position *position, const struct sl_cursor *cursor);
/* Has come as far as `cursor` says, in each shard, or further already. */
void position_reach(struct position *position, const struct sl_cursor *cursor);
/* Comes to the event `id` of this shard, which is the next of all but those in `held`, a bit for
 * each: they stay where they are, or at lows[shard], if that is higher. */
void position_pass(struct position *position, uint32_t shard, uint64_t id, uint64_t held,
                   const uint64_t *lows);
/* Of this shard everything up to `id`, or further already. */
void position_raise_shard(struct position *position, uint32_t shard, uint64_t id);
/* Of this shard no more than up to `low`. */
void position_lower_shard(struct position *position, uint32_t shard, uint64_t low);

static inline bool position_is_plain(const struct position *position)
{
    return position->behind == 0;
}
