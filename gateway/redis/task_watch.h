/* gateway/redis/task_watch.h - keeps the numbers of the task queue in /metrics fresh, and notes
 * whether somebody runs the tasks: none has waited for a minute (gateway/metrics/health.h).
 *
 * Asks every five seconds, shard by shard, one small script each; one worker does it for all. When
 * a shard cannot be asked the numbers stay what they were. */
#pragma once

#include <uv.h>

#include "gateway/metrics/metrics.h"
#include "gateway/redis/shard_watch.h"

enum { TASK_WATCH_MS = 5000, TASKS_WAIT_MS = 60000 };

/* NULL: out of memory. */
struct shard_watch *task_watch_new(uv_loop_t *loop, struct redis_commands *commands,
                                   struct metrics *metrics);
