/* gateway/intake/shard_clocks.h - keeps the shards' clocks together, and has late events marked.
 *
 * Ids are minted by the clock of Redis. When it steps back, quiet shards mint far below what has
 * been given out of others; and events of a shard that the others went on without come late.
 * Whoever goes by plain ids would not learn of either. So this calls raise_clock.lua
 * (src/database/database_clock.h) for the shards concerned: one write a shard and step, by
 * whichever gateway is first. The shards of one Redis, or of one node of a cluster, are asked one
 * after the other, each with what the one before was found to have, until all have the same. While
 * Redis fails they are asked again after 0.1 s at first, 5 s at most. Belongs to the thread of its loop. */
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
/* After the commands, which answer what is under way. The loop must run once more. */
void shard_clocks_free(struct shard_clocks *clocks);

/* The database is known; before that nothing else is told. */
void shard_clocks_begin(struct shard_clocks *clocks, const struct sl_meta *meta);
/* What the meta of the shard says, as sl_meta_reply() has it. */
void shard_clocks_set_until(struct shard_clocks *clocks, uint32_t shard, uint64_t until_ms);

/* As was found last. */
uint64_t shard_clocks_until_ms(const struct shard_clocks *clocks, uint32_t shard);

/* The Redis that has these shards, a bit for each, has said that it is `time_ms` (Unix time), and
 * everything at or below `high` has been given out. Returns the time that they mint ids by from
 * then on, or a later one. When that lies behind `high`, the clock has stepped back: they are
 * raised. */
uint64_t shard_clocks_take_time(struct shard_clocks *clocks, uint64_t shards, uint64_t time_ms,
                                uint64_t high);

/* The TIME of Redis at which all shards mint by `ids_ms` or a later time. */
uint64_t shard_clocks_when_ms(const struct shard_clocks *clocks, uint64_t ids_ms);

/* Of the shard only what is at or below `low` has been given out; said again when that has changed.
 */
void shard_clocks_behind(struct shard_clocks *clocks, uint32_t shard, uint64_t low);
/* Something of a shard that is behind has come at or below `high`, up to which the others have been
 * given out. */
void shard_clocks_late(struct shard_clocks *clocks, uint32_t shard, uint64_t high);
/* The shard is not behind any more: all of it at or below `high` has been given out, late or not.
 */
void shard_clocks_whole(struct shard_clocks *clocks, uint32_t shard, uint64_t high);
