#include "gateway/redis/shard_watch.h"

#include "base/alloc.h"

struct shard_watch {
    uv_timer_t timer;
    struct redis_commands *commands;
    const struct shard_question *question;
    struct sl_meta meta; /* its number of shards is all that is needed */
    uint32_t shard;      /* that is asked, or was last */
    bool is_asking;
    _Alignas(max_align_t) unsigned char context[];
};

static void ask(struct shard_watch *watch);

static void on_reply(void *owner, const redisReply *reply, const char *why)
{
    struct shard_watch *watch = owner;

    (void)why; /* who needs it says so, and why */
    watch->is_asking = false;
    if (!reply || watch->question->take(watch->context, watch->shard, reply) < 0)
        return;
    if (++watch->shard < watch->meta.shards)
        ask(watch);
    else if (watch->question->end)
        watch->question->end(watch->context);
}

static void ask(struct shard_watch *watch)
{
    struct sl_call call = SL_CALL_INIT;

    if (watch->question->build(&call, &watch->meta, watch->shard, NULL) < 0)
        sl_call_done(&call);
    else
        watch->is_asking = redis_commands_run_take(watch->commands, &call, on_reply, watch) == 0;
}

static void on_timer(uv_timer_t *timer)
{
    struct shard_watch *watch = timer->data;

    if (watch->is_asking)
        return;
    watch->shard = 0;
    ask(watch);
}

void shard_watch_begin(struct shard_watch *watch, uint32_t shards)
{
    if (!watch)
        return;
    watch->meta.shards = shards;
    uv_timer_start(&watch->timer, on_timer, 0, watch->question->every_ms);
}

struct shard_watch *shard_watch_new(uv_loop_t *loop, struct redis_commands *commands,
                                    const struct shard_question *question, size_t context_size)
{
    struct shard_watch *watch = mem_zalloc(sizeof(*watch) + context_size);

    if (!watch)
        return NULL;
    watch->commands = commands;
    watch->question = question;
    uv_timer_init(loop, &watch->timer);
    watch->timer.data = watch;
    return watch;
}

void *shard_watch_context(struct shard_watch *watch)
{
    return watch->context;
}

static void on_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

void shard_watch_free(struct shard_watch *watch)
{
    if (watch)
        uv_close((uv_handle_t *)&watch->timer, on_closed);
}
