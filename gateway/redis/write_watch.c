#include "gateway/redis/write_watch.h"

#include "base/alloc.h"
#include "base/failure.h"
#include "gateway/redis/shard_watch.h"
#include "src/database/event_log.h"

struct write_watch {
    struct shard_watch *shards;
    write_watch_fn looked;
    void *context;
};

static int take(void *context, uint32_t shard, const redisReply *reply)
{
    const struct write_watch *watch = context;
    struct failure failure, why;
    int r = sl_event_log_check_reply(reply, &failure);

    if (r == 0)
        return 0;
    failure_set(&why, r, "shard %u: %s", (unsigned)shard, failure.text);
    watch->looked(watch->context, r, why.text);
    return r;
}

static void take_end(void *context)
{
    const struct write_watch *watch = context;

    watch->looked(watch->context, 0, NULL);
}

struct write_watch *write_watch_new(uv_loop_t *loop, struct redis_commands *commands,
                                    write_watch_fn looked, void *context)
{
    static const struct shard_question question = {
        .every_ms = WRITE_WATCH_MS,
        .build = sl_event_log_check_call,
        .take = take,
        .end = take_end,
    };
    struct write_watch *watch = mem_zalloc(sizeof(*watch));

    if (!watch)
        return NULL;
    watch->looked = looked;
    watch->context = context;
    watch->shards = shard_watch_new(loop, commands, &question, watch);
    if (!watch->shards) {
        mem_free(watch);
        return NULL;
    }
    return watch;
}

void write_watch_free(struct write_watch *watch)
{
    if (!watch)
        return;
    shard_watch_free(watch->shards);
    mem_free(watch);
}

void write_watch_begin(struct write_watch *watch, uint32_t shards)
{
    shard_watch_begin(watch->shards, shards);
}
