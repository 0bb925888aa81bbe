#include "gateway/redis/log_watch.h"

#include "base/clock.h"
#include "src/database/event_log.h"
#include "src/model/id.h"

struct log_watch {
    struct metrics *metrics;
};

static int show(void *context, uint32_t shard, const redisReply *reply)
{
    struct metrics *metrics = ((struct log_watch *)context)->metrics;
    uint64_t now_ms = clock_wall_ms(), oldest_ms, age_ms;
    struct sl_event_log_state state;
    int r = sl_event_log_state_reply(reply, &state, NULL);

    if (r < 0)
        return r;
    oldest_ms = sl_id_time_ms(state.oldest);
    age_ms = state.oldest > 0 && now_ms > oldest_ms ? now_ms - oldest_ms : 0;
    metric_set_shard(metrics, METRIC_SHARD_LOG_EVENTS, shard, state.count);
    metric_set_shard(metrics, METRIC_SHARD_LOG_AGE, shard, age_ms * 1000);
    metric_set_shard(metrics, METRIC_SHARD_LOG_BYTES, shard, state.bytes);
    return 0;
}

struct shard_watch *log_watch_new(uv_loop_t *loop, struct redis_commands *commands,
                                  struct metrics *metrics)
{
    static const struct shard_question question = {
        .every_ms = LOG_WATCH_MS,
        .build = sl_event_log_state_call,
        .take = show,
    };
    struct shard_watch *watch =
        shard_watch_new(loop, commands, &question, sizeof(struct log_watch));

    if (watch)
        *(struct log_watch *)shard_watch_context(watch) = (struct log_watch){metrics};
    return watch;
}
