/* gateway/redis/task_watch.h - keeps the numbers of the task queue in /metrics fresh.
 *
 * Asks every shard every few seconds, one small script each, over the connection that commands
 * have. One worker of a server does this. */
#pragma once

#include <stdint.h>
#include <uv.h>

#include "gateway/metrics/metrics.h"
#include "gateway/redis/redis_commands.h"

struct task_watch;

/* NULL: out of memory. */
struct task_watch *task_watch_new(uv_loop_t *loop, struct redis_commands *commands,
                                  struct metrics *metrics);
/* After the commands have been freed. The loop must run on to let go of the timer. */
void task_watch_free(struct task_watch *watch);

/* From now on there is a database to ask. */
void task_watch_set_shards(struct task_watch *watch, uint32_t shards);
