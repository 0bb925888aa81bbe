/* gateway/redis/shard_watch.h - makes the same call to every shard at intervals.
 *
 * A round asks one shard after the other, so that 64 shards are no burst; in a cluster all nodes in
 * parallel, and the shards of each one after the other. A failure ends the round for that node. The
 * next round begins on time; rounds do not overlap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "gateway/redis/redis_commands.h"
#include "src/database/meta.h"

struct shard_watch;

struct shard_question {
    uint32_t every_ms;
    /* A round begins. May be NULL. */
    void (*begin)(void *context);
    /* 0; a negative errno: cannot be asked. Of the meta only the number of shards is set. */
    int (*build)(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                 struct failure *reterr);
    /* 0; a negative errno: not a valid answer. */
    int (*take)(void *context, uint32_t shard, const redisReply *reply);
    /* Every shard has answered. May be NULL. */
    void (*end)(void *context);
};

/* `question` is borrowed as long as the watch exists; its functions get a context of `context_size`
 * bytes, initially zero. NULL: out of memory. */
struct shard_watch *shard_watch_new(uv_loop_t *loop, struct redis_commands *commands,
                                    const struct shard_question *question, size_t context_size);
void *shard_watch_context(struct shard_watch *watch);
/* Free it after the commands, which answer what is outstanding. The loop must run once more. */
void shard_watch_free(struct shard_watch *watch);

/* The database has this many shards: starts at once, and repeats. NULL is allowed. */
void shard_watch_begin(struct shard_watch *watch, uint32_t shards);
