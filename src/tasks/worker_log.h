/* src/tasks/worker_log.h - logs the news of a worker, for the programs that run workers.
 *
 * News that can be frequent, such as failed tasks, is logged at most once a second for each kind;
 * `held_back` counts the suppressed lines. */
#pragma once

#include <pthread.h>

#include "base/log.h"
#include "src/tasks/worker.h"

struct sl_worker_log {
    pthread_mutex_t mutex; /* protects `rates` */
    struct log_rate rates[SL_WORKER_NEWS];
};

#define SL_WORKER_LOG_INIT ((struct sl_worker_log){.mutex = PTHREAD_MUTEX_INITIALIZER})

/* A sl_worker_tell_fn; `context` is a struct sl_worker_log. */
void sl_worker_log(void *context, enum sl_worker_news news, const struct sl_task *task,
                   const char *text);
