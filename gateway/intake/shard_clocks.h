/* gateway/intake/shard_clocks.h - keeps the shards' clocks together, and has late events marked.
 *
 * Ids are minted by the clock of Redis. When it is set back, quiet shards mint ids far below those
 * that have been delivered of others; and events of a shard that was left behind arrive late.
 * Clients that use plain ids would notice neither. So this calls raise_clock.lua
 * (src/database/database_clock.h) for the shards concerned: one write for each shard and step, by
 * the first gateway that notices. The shards of one Redis, or of one node of a cluster, are called
 * one after the other, each with the result of the one before, until all have the same value. While
 * Redis fails they are called again after 0.1 s at first, 5 s at most. Belongs to the thread of its
 * loop. */
#pragma once

#include <stdint.h>
#include <uv.h>

#include "gateway/metrics/metrics.h"
#include "gateway/redis/redis_commands.h"
#include "src/model/database.h"

struct shard_clocks;

/* NULL: out of memory. */
struct shard_clocks *shard_clocks_new(uv_loop_t *loop, struct redis_commands *commands,
                                      struct metrics *metrics);
/* Call it after freeing the commands, which answer what is outstanding. The loop must run once
 * more. */
void shard_clocks_free(struct shard_clocks *clocks);

/* The database is known; nothing else may be reported before. */
void shard_clocks_begin(struct shard_clocks *clocks, const struct sl_meta *meta);
/* The value in the meta of the shard, as returned by sl_meta_reply(). */
void shard_clocks_set_until(struct shard_clocks *clocks, uint32_t shard, uint64_t until_ms);

/* The last known value. */
uint64_t shard_clocks_until_ms(const struct shard_clocks *clocks, uint32_t shard);

/* The Redis of these shards, as bits, has reported the time `time_ms` (Unix time), and everything
 * at or below `high` has been delivered. Returns the time that ids minted from then on have at
 * least. If that is below `high`, the clock was set back, and the shards are raised. */
uint64_t shard_clocks_take_time(struct shard_clocks *clocks, uint64_t shards, uint64_t time_ms,
                                uint64_t high);

/* The TIME of Redis at which all shards mint ids with the time `ids_ms` or later. */
uint64_t shard_clocks_when_ms(const struct shard_clocks *clocks, uint64_t ids_ms);

/* Of this shard only what is at or below `low` has been delivered; called again when that
 * changes. */
void shard_clocks_behind(struct shard_clocks *clocks, uint32_t shard, uint64_t low);
/* Something of a shard that is behind has arrived at or below `high`, up to which the others have
 * been delivered. */
void shard_clocks_late(struct shard_clocks *clocks, uint32_t shard, uint64_t high);
/* The shard is no longer behind: all of it at or below `high` has been delivered, late or not. */
void shard_clocks_whole(struct shard_clocks *clocks, uint32_t shard, uint64_t high);
