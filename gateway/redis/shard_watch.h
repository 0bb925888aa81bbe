/* gateway/redis/shard_watch.h - asks every shard the same question, now and then.
 *
 * A round asks one shard after the other, so that 64 of them are no burst; in a cluster all nodes
 * at once, and of each one shard after the other. A failure ends it for that node. The next one
 * begins on time; rounds do not overlap. */
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
    /* 0; a negative errno: it cannot be asked. Of the meta the number of shards is known. */
    int (*build)(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                 struct failure *reterr);
    /* 0; a negative errno: that is no answer. */
    int (*take)(void *context, uint32_t shard, const redisReply *reply);
    /* Every shard has answered. May be NULL. */
    void (*end)(void *context);
};

/* `question` lives as long as the watch; its functions get `context_size` bytes, zeros at first, as
 * their context. NULL: out of memory. */
struct shard_watch *shard_watch_new(uv_loop_t *loop, struct redis_commands *commands,
                                    const struct shard_question *question, size_t context_size);
void *shard_watch_context(struct shard_watch *watch);
/* After the commands, which answer what is under way. The loop must run once more. */
void shard_watch_free(struct shard_watch *watch);

/* The database has so many shards: asks at once, and from then on. NULL is no watch. */
void shard_watch_begin(struct shard_watch *watch, uint32_t shards);
