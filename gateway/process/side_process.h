/* gateway/process/side_process.h - a process beside the workers, as the parent knows it: forked,
 * watched by its pidfd, started again after a delay that grows while it keeps ending soon. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gateway/process/restart_delay.h"

/* What is logged of it. */
struct side_lines {
    const char *started, *not_started, *stopped, *died;
};

struct side_process {
    const struct side_lines *lines;
    pid_t pid;
    int pidfd; /* -1: it does not run */
    uint64_t started_ms;
    uint64_t retry_ms; /* while it does not run: not before */
    struct restart_delay delay;
};

static inline bool side_process_is_down(const struct side_process *process)
{
    return process->pidfd < 0;
}

/* After the fork: `pid` is its result, below 0 a failure, which is logged. */
void side_process_forked(struct side_process *process, pid_t pid, uint64_t now_ms);

void side_process_signal(const struct side_process *process, int number);

/* Its pidfd has become readable: collects and logs how it ended. */
void side_process_note_end(struct side_process *process, bool was_told, uint64_t now_ms);
