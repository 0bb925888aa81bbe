/* gateway/process/process_usage.h - what a process takes, read from /proc.
 *
 * For the supervisor, not for a worker's loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_usage {
    uint64_t cpu_us; /* user and system */
    uint64_t resident_bytes;
};

/* 0; a negative errno: no such process, or not ours to look at. */
int process_usage_read(pid_t pid, struct process_usage *ret_usage);

/* How many descriptors the process has. Linux tells since 6.2. Before, they have to be listed,
 * which takes a millisecond a thousand: -EAGAIN without `may_list`. 0, or a negative errno as
 * above. */
int process_usage_count_files(pid_t pid, bool may_list, uint64_t *ret_count);
