/* gateway/process/process_usage.h - reads the resources of a process from /proc.
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

/* 0; a negative errno: no such process, or no permission. */
int process_usage_read(pid_t pid, struct process_usage *ret_usage);

/* Counts the descriptors of the process. Linux reports the number since 6.2. Before, they must be
 * listed, which takes a millisecond for each thousand: -EAGAIN without `may_list`. 0, or a negative
 * errno as above. */
int process_usage_count_files(pid_t pid, bool may_list, uint64_t *ret_count);
