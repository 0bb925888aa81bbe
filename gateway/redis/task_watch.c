/* task_watch.c - counts the tasks and reports failures, for /metrics and /readyz?verbose.
 *
 * Every shard is asked in turn (src/scripts/task_counts.lua); when all have answered, the sum is
 * published. Tasks that wait for more than a minute are reported as failing, once until they run
 * again. */
#include "gateway/redis/task_watch.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "gateway/metrics/health.h"
#include "src/tasks/tasks.h"

struct task_watch {
    struct metrics *metrics;
    struct sl_task_counts sum; /* of the shards that have answered in this round */
    uint64_t archive_away;     /* shards whose tasks wait for the archive */
};

static void begin(void *context)
{
    struct task_watch *watch = context;

    watch->sum = (struct sl_task_counts){0};
    watch->archive_away = 0;
}

static int add(void *context, uint32_t shard, const redisReply *reply)
{
    struct task_watch *watch = context;
    struct sl_task_counts *sum = &watch->sum, counts;
    int r = sl_task_counts_reply(reply, &counts, NULL);

    (void)shard;
    if (r < 0)
        return r;
    watch->archive_away += counts.archive_away[0] != '\0';
    sum->tasks += counts.tasks;
    sum->taken += counts.taken;
    sum->dead += counts.dead;
    sum->kept += counts.kept;
    if (counts.oldest_ms > sum->oldest_ms)
        sum->oldest_ms = counts.oldest_ms;
    return 0;
}

static void judge(const struct task_watch *watch)
{
    uint64_t oldest_ms = watch->sum.oldest_ms;
    bool waits = oldest_ms > TASKS_WAIT_MS;
    char why[HEALTH_WHY_SIZE];

    snprintf(why, sizeof(why),
             "the oldest task has waited for more than %d s: no worker runs, or too few, or it "
             "keeps failing",
             TASKS_WAIT_MS / 1000);
    if (!health_set(watch->metrics, HEALTH_TASKS, waits ? HEALTH_FAILING : HEALTH_OK, why,
                    clock_wall_ms()))
        return;
    if (waits)
        log_warn("tasks_wait", "tasks=%" PRIu64 " oldest_ms=%" PRIu64, watch->sum.tasks, oldest_ms);
    else
        log_info("tasks_run", "tasks=%" PRIu64, watch->sum.tasks);
}

static void show(void *context)
{
    const struct task_watch *watch = context;

    metric_set(watch->metrics, METRIC_TASKS, watch->sum.tasks);
    metric_set(watch->metrics, METRIC_TASKS_TAKEN, watch->sum.taken);
    metric_set(watch->metrics, METRIC_TASKS_OLDEST, watch->sum.oldest_ms * 1000);
    metric_set(watch->metrics, METRIC_TASKS_DEAD, watch->sum.dead);
    metric_set(watch->metrics, METRIC_REQUEST_IDS, watch->sum.kept);
    metric_set(watch->metrics, METRIC_ARCHIVE_AWAY, watch->archive_away);
    judge(watch);
}

struct shard_watch *task_watch_new(uv_loop_t *loop, struct redis_commands *commands,
                                   struct metrics *metrics)
{
    static const struct shard_question question = {
        .every_ms = TASK_WATCH_MS,
        .begin = begin,
        .build = sl_task_counts_call,
        .take = add,
        .end = show,
    };
    struct shard_watch *watch =
        shard_watch_new(loop, commands, &question, sizeof(struct task_watch));

    if (watch)
        *(struct task_watch *)shard_watch_context(watch) = (struct task_watch){.metrics = metrics};
    return watch;
}
