/* gateway/process/side_process.h - the parent's view of a process beside the workers: forked,
 * watched by its pidfd, and restarted after a delay that increases while it keeps ending early. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gateway/process/restart_delay.h"

/* The names of its log lines. */
struct side_lines {
    const char *started, *not_started, *stopped, *died;
};

struct side_process {
    const struct side_lines *lines;
    pid_t pid;
    int pidfd; /* -1: not running */
    uint64_t started_ms;
    uint64_t retry_ms; /* while not running: do not start before this */
    struct restart_delay delay;
};

static inline bool side_process_is_down(const struct side_process *process)
{
    return process->pidfd < 0;
}

/* Called after the fork with its result `pid`; below 0 is a failure, which is logged. */
void side_process_forked(struct side_process *process, pid_t pid, uint64_t now_ms);

void side_process_signal(const struct side_process *process, int number);

/* Its pidfd is readable: collects and logs how it ended. */
void side_process_note_end(struct side_process *process, bool was_told, uint64_t now_ms);
