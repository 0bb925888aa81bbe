/* bench/fanout_process.h - CPU time and memory of a process and its descendants, from /proc. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct process_tree {
    pid_t pids[512];
    int count;
};

struct process_cpu {
    uint64_t all_ns; /* off by up to a tick for a running thread; exact for a sleeping one */
    uint64_t user_ms, sys_ms; /* in steps of 10 ms */
};

void process_tree_read(pid_t root, struct process_tree *ret_tree);
void process_cpu_read(const struct process_tree *tree, struct process_cpu *ret_cpu);
/* The proportional set size; 0 if it may not be read. */
uint64_t process_pss_bytes(const struct process_tree *tree);
