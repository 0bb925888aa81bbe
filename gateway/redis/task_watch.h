/* gateway/redis/task_watch.h - updates the metrics of the task queue, and checks that tasks are
 * run, which means that none has waited for a minute (gateway/metrics/health.h).
 *
 * Asks every five seconds, shard by shard, with a small script; one worker does it for all. If a
 * shard cannot be asked, the last values are kept. */
#pragma once

#include <uv.h>

#include "gateway/metrics/metrics.h"
#include "gateway/redis/shard_watch.h"

enum { TASK_WATCH_MS = 5000, TASKS_WAIT_MS = 60000 };

/* NULL: out of memory. */
struct shard_watch *task_watch_new(uv_loop_t *loop, struct redis_commands *commands,
                                   struct metrics *metrics);
