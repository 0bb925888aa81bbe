#include "gateway/redis/task_watch.h"

#include "base/alloc.h"
#include "src/model/database.h"
#include "src/tasks/tasks.h"

enum { EVERY_MS = 5000 };

struct task_watch {
    struct redis_commands *commands;
    struct metrics *metrics;
    uv_timer_t timer;
    struct sl_meta meta;          /* only its shards; 0: not known yet */
    uint32_t awaited;             /* answers of this round that are still to come */
    bool is_whole;                /* none of them failed so far */
    struct sl_task_counts counts; /* of the answers that have come */
};

static void show(const struct task_watch *watch)
{
    metric_set(watch->metrics, METRIC_TASKS, watch->counts.tasks);
    metric_set(watch->metrics, METRIC_TASKS_TAKEN, watch->counts.taken);
    metric_set(watch->metrics, METRIC_TASKS_OLDEST, watch->counts.oldest_ms * 1000);
    metric_set(watch->metrics, METRIC_TASKS_DEAD, watch->counts.dead);
}

static void on_reply(void *owner, const redisReply *reply, const char *why)
{
    struct task_watch *watch = owner;
    struct sl_task_counts *sum = &watch->counts, counts = {0};

    (void)why;
    if (!reply || sl_task_counts_reply(reply, &counts, NULL) < 0)
        watch->is_whole = false;
    sum->tasks += counts.tasks;
    sum->taken += counts.taken;
    sum->dead += counts.dead;
    if (counts.oldest_ms > sum->oldest_ms)
        sum->oldest_ms = counts.oldest_ms;
    if (--watch->awaited == 0 && watch->is_whole)
        show(watch);
}

static void ask(struct task_watch *watch)
{
    if (watch->awaited > 0)
        return;
    watch->is_whole = true;
    watch->counts = (struct sl_task_counts){0};
    for (uint32_t shard = 0; shard < watch->meta.shards; shard++) {
        struct sl_call call = SL_CALL_INIT;

        if (sl_task_counts_call(&call, &watch->meta, shard, NULL) < 0)
            sl_call_done(&call);
        else if (redis_commands_run_take(watch->commands, &call, on_reply, watch) == 0) {
            watch->awaited++;
            continue;
        }
        watch->is_whole = false; /* out of memory: the next round may have more luck */
    }
}

static void on_timer(uv_timer_t *timer)
{
    ask(timer->data);
}

struct task_watch *task_watch_new(uv_loop_t *loop, struct redis_commands *commands,
                                  struct metrics *metrics)
{
    struct task_watch *watch = mem_zalloc(sizeof(*watch));

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

void task_watch_free(struct task_watch *watch)
{
    if (watch)
        uv_close((uv_handle_t *)&watch->timer, on_closed);
}

void task_watch_set_shards(struct task_watch *watch, uint32_t shards)
{
    watch->meta.shards = shards;
    if (!uv_is_active((uv_handle_t *)&watch->timer))
        uv_timer_start(&watch->timer, on_timer, 0, EVERY_MS);
}
