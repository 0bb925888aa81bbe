#include "src/tasks/worker_log.h"

#include <inttypes.h>

#include "base/log.h"

static const struct {
    const char *event;
    enum log_level level;
} rows[] = {
    [SL_WORKER_TASK_DONE] = {"task_done", LOG_LEVEL_DEBUG},
    [SL_WORKER_TASK_LATER] = {"task_failed", LOG_LEVEL_WARN},
    [SL_WORKER_TASK_DEAD] = {"task_dead", LOG_LEVEL_ERROR},
    [SL_WORKER_TASK_LOST] = {"task_lost", LOG_LEVEL_WARN},
    [SL_WORKER_REDIS_AWAY] = {"tasks_wait_for_redis", LOG_LEVEL_WARN},
    [SL_WORKER_REDIS_BACK] = {"tasks_go_on", LOG_LEVEL_INFO},
};

void sl_worker_log(void *context, enum sl_worker_news news, const struct sl_task *task,
                   const char *text)
{
    char kind[LOG_QUOTE_SIZE], why[LOG_QUOTE_SIZE];

    (void)context;
    if (!log_enabled(rows[news].level))
        return;
    log_quote(sl_slice_str(text ? text : ""), why);
    if (task)
        log_line(rows[news].level, rows[news].event,
                 "kind=%s task=%" PRIu32 ":%.*s id=%" PRIu64 " try=%" PRIu64 " why=%s",
                 log_quote(task->kind, kind), task->shard, SL_SLICE_ARG(task->entry), task->id,
                 task->tries, why);
    else
        log_line(rows[news].level, rows[news].event, "why=%s", why);
}
