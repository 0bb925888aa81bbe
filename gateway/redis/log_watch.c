#include "gateway/redis/log_watch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "src/database/log.h"
#include "src/model/id.h"

struct log_watch {
    uv_timer_t timer;
    struct redis_commands *commands;
    struct metrics *metrics;
    struct sl_meta meta; /* its number of shards is all that is needed */
    uint32_t shard;      /* that is asked, or was last */
    bool is_asking;
};

struct log_watch *log_watch_new(uv_loop_t *loop, struct redis_commands *commands,
                                struct metrics *metrics)
{
    struct log_watch *watch = mem_zalloc(sizeof(*watch));

    if (!watch)
        return NULL;
    watch->commands = commands;
    watch->metrics = metrics;
    uv_timer_init(loop, &watch->timer);
    watch->timer.data = watch;
    return watch;
}

static void on_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

void log_watch_free(struct log_watch *watch)
{
    if (watch)
        uv_close((uv_handle_t *)&watch->timer, on_closed);
}

static void show(struct log_watch *watch, const struct sl_log_state *state)
{
    uint64_t now_ms = clock_wall_ms(), oldest_ms = sl_id_time_ms(state->oldest);
    uint64_t age_ms = state->oldest > 0 && now_ms > oldest_ms ? now_ms - oldest_ms : 0;

    metric_set_shard(watch->metrics, METRIC_SHARD_LOG_EVENTS, watch->shard, state->count);
    metric_set_shard(watch->metrics, METRIC_SHARD_LOG_AGE, watch->shard, age_ms * 1000);
    metric_set_shard(watch->metrics, METRIC_SHARD_LOG_BYTES, watch->shard, state->bytes);
}

static void ask(struct log_watch *watch);

static void on_state(void *owner, const redisReply *reply, const char *why)
{
    struct log_watch *watch = owner;
    struct sl_log_state state;

    (void)why; /* who needs the log says so, and why */
    watch->is_asking = false;
    if (!reply || sl_log_state_reply(reply, &state, NULL) < 0)
        return;
    show(watch, &state);
    if (++watch->shard < watch->meta.shards)
        ask(watch);
}

/* A failure ends this round; the next one begins on time. */
static void ask(struct log_watch *watch)
{
    struct sl_call call = SL_CALL_INIT;

    if (sl_log_state_call(&call, &watch->meta, watch->shard, NULL) < 0 ||
        redis_commands_run_take(watch->commands, &call, on_state, watch) < 0)
        sl_call_done(&call);
    else
        watch->is_asking = true;
}

static void on_timer(uv_timer_t *timer)
{
    struct log_watch *watch = timer->data;

    if (watch->is_asking)
        return;
    watch->shard = 0;
    ask(watch);
}

void log_watch_begin(struct log_watch *watch, uint32_t shards)
{
    watch->meta.shards = shards;
    metric_set(watch->metrics, METRIC_SHARDS, shards);
    uv_timer_start(&watch->timer, on_timer, 0, LOG_WATCH_MS);
}
