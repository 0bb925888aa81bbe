/* src/tasks/worker_log.h - how the programs that run workers log what a worker tells.
 *
 * What a worker may have to tell very often, tasks that fail, is logged once a second at most for
 * each kind of news; `held_back` says how many lines are missing. */
#pragma once

#include <pthread.h>

#include "base/log.h"
#include "src/tasks/worker.h"

struct sl_worker_log {
    pthread_mutex_t mutex; /* behind it: */
    struct log_rate rates[SL_WORKER_NEWS];
};

#define SL_WORKER_LOG_INIT ((struct sl_worker_log){.mutex = PTHREAD_MUTEX_INITIALIZER})

/* A sl_worker_tell_fn; `context` is a struct sl_worker_log. */
void sl_worker_log(void *context, enum sl_worker_news news, const struct sl_task *task,
                   const char *text);
