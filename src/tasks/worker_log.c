#include "src/tasks/worker_log.h"

#include <inttypes.h>

#include "base/clock.h"

static const struct {
    const char *event;
    enum log_level level;
} rows[] = {
    [SL_WORKER_TASK_DONE] = {"task_done", LOG_LEVEL_DEBUG},
    [SL_WORKER_TASK_LATER] = {"task_failed", LOG_LEVEL_WARN},
    [SL_WORKER_TASK_DEAD] = {"task_dead", LOG_LEVEL_ERROR},
    [SL_WORKER_TASK_LOST] = {"task_lost", LOG_LEVEL_WARN},
    [SL_WORKER_REDIS_AWAY] = {"tasks_wait_for_redis", LOG_LEVEL_WARN},
    [SL_WORKER_DROPS] = {"old_posts_are_dropped", LOG_LEVEL_WARN},
    [SL_WORKER_REDIS_BACK] = {"tasks_go_on", LOG_LEVEL_INFO},
};

static bool is_to_be_logged(struct sl_worker_log *log, enum sl_worker_news news,
                            uint64_t *ret_held_back)
{
    bool is_allowed;

    pthread_mutex_lock(&log->mutex);
    is_allowed = log_rate_allows(&log->rates[news], clock_monotonic_ms(), ret_held_back);
    pthread_mutex_unlock(&log->mutex);
    return is_allowed;
}

void sl_worker_log(void *context, enum sl_worker_news news, const struct sl_task *task,
                   const char *text)
{
    const enum log_level level = rows[news].level;
    char kind[LOG_QUOTE_SIZE], why[LOG_QUOTE_SIZE];
    uint64_t held_back = 0;

    if (!log_enabled(level) ||
        (level != LOG_LEVEL_DEBUG && !is_to_be_logged(context, news, &held_back)))
        return;
    log_quote(sl_slice_str(text ? text : ""), why);
    if (task)
        log_line(level, rows[news].event,
                 "kind=%s task=%" PRIu32 ":%.*s id=%" PRIu64 " try=%" PRIu64
                 " why=%s held_back=%" PRIu64,
                 log_quote(task->kind, kind), task->shard, SL_SLICE_ARG(task->entry), task->id,
                 task->tries, why, held_back);
    else
        log_line(level, rows[news].event, "why=%s held_back=%" PRIu64, why, held_back);
}
