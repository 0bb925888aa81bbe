/* src/tasks/worker_log.h - how the programs that run workers log what a worker tells. */
#pragma once

#include "src/tasks/worker.h"

/* A sl_worker_tell_fn; needs no context. */
void sl_worker_log(void *context, enum sl_worker_news news, const struct sl_task *task,
                   const char *text);
