/* gateway/process/task_runner.h - the process of sluiced that runs tasks (src/tasks/worker.h).
 *
 * The supervisor forks it, and again when it ended; a process of its own, because a task may block
 * and must not stall the streams, nor a crash in one cost anybody a connection. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gateway/process/restart_delay.h"
#include "gateway/config/config.h"

struct task_runner {
    pid_t pid;
    int pidfd; /* -1: it does not run */
    uint64_t started_ms;
    uint64_t retry_ms; /* while it does not run: not before */
    struct restart_delay delay;
};

#define TASK_RUNNER_INIT ((struct task_runner){.pidfd = -1})

/* Is sluiced to run tasks? Unless told otherwise: those of its own private Redis, and those of a
 * Redis that only the environment names, since whoever exported that may have meant other programs
 * and expects all that a sluiced does by itself. */
bool task_runner_is_wanted(const struct config *config);

/* Logs whose tasks are run, where that is not what everybody expects. */
void task_runner_tell(const struct config *config);

static inline bool task_runner_is_down(const struct task_runner *runner)
{
    return runner->pidfd < 0;
}

/* After the fork: `pid` is its result, below 0 a failure, which is logged. */
void task_runner_forked(struct task_runner *runner, pid_t pid, uint64_t now_ms);

void task_runner_signal(const struct task_runner *runner, int number);

/* Its pidfd has become readable: collects and logs how it ended. */
void task_runner_note_end(struct task_runner *runner, bool was_told, uint64_t now_ms);

/* In the child: runs tasks until SIGTERM or SIGINT, waits for Redis where it must; the exit
 * status. */
int task_runner_main(const struct config *config, const char *redis_url);
