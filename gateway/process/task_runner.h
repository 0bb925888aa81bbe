/* gateway/process/task_runner.h - the process of sluiced that runs tasks (src/tasks/worker.h).
 *
 * The supervisor forks it, and restarts it when it ended. It is a separate process because a task
 * may block, which must not stall the streams, and because a crash in a task must not cost
 * connections. */
#pragma once

#include <stdbool.h>

#include "gateway/config/config.h"
#include "gateway/process/side_process.h"

/* The names of its log lines. */
extern const struct side_lines task_runner_lines;

/* Whether sluiced should run tasks. By default it runs those of its own private Redis, and those of
 * a Redis that is named in the environment only: that variable may have been exported for other
 * programs, and the user expects all that sluiced does by default. */
bool task_runner_is_wanted(const struct config *config);

/* Logs whose tasks are run, if that is not what users expect. */
void task_runner_tell(const struct config *config);

/* Runs in the child: runs tasks until SIGTERM or SIGINT, and waits for Redis if necessary. Returns
 * the exit status. */
int task_runner_main(const struct config *config, const char *redis_url);
