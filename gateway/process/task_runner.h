/* gateway/process/task_runner.h - the process of sluiced that runs tasks (src/tasks/worker.h).
 *
 * The supervisor forks it, and again when it ended; a process of its own, because a task may block
 * and must not stall the streams, nor a crash in one cost anybody a connection. */
#pragma once

#include <stdbool.h>

#include "gateway/config/config.h"
#include "gateway/process/side_process.h"

/* What is logged of it. */
extern const struct side_lines task_runner_lines;

/* Is sluiced to run tasks? Unless told otherwise: those of its own private Redis, and those of a
 * Redis that only the environment names, since whoever exported that may have meant other programs
 * and expects all that a sluiced does by itself. */
bool task_runner_is_wanted(const struct config *config);

/* Logs whose tasks are run, where that is not what everybody expects. */
void task_runner_tell(const struct config *config);

/* In the child: runs tasks until SIGTERM or SIGINT, waits for Redis where it must; the exit
 * status. */
int task_runner_main(const struct config *config, const char *redis_url);
