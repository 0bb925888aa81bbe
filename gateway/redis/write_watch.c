#include "gateway/redis/write_watch.h"

#include "base/failure.h"
#include "src/database/event_log.h"

struct write_watch {
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

struct shard_watch *write_watch_new(uv_loop_t *loop, struct redis_commands *commands,
                                    write_watch_fn looked, void *context)
{
    static const struct shard_question question = {
        .every_ms = WRITE_WATCH_MS,
        .build = sl_event_log_check_call,
        .take = take,
        .end = take_end,
    };
    struct shard_watch *watch =
        shard_watch_new(loop, commands, &question, sizeof(struct write_watch));

    if (watch)
        *(struct write_watch *)shard_watch_context(watch) = (struct write_watch){looked, context};
    return watch;
}
