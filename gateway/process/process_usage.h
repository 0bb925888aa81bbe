/* gateway/process/process_usage.h - what a process takes, read from /proc.
 *
 * Counting the descriptors of a process with 10,000 of them takes milliseconds: for the supervisor,
 * not for a worker's loop. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct process_usage {
    uint64_t cpu_us; /* user and system */
    uint64_t resident_bytes;
    uint64_t open_files;
};

/* 0; a negative errno: no such process, or not ours to look at. */
int process_usage_read(pid_t pid, struct process_usage *ret_usage);
