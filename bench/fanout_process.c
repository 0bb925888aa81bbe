/* fanout_process.c - a process and its descendants in /proc: CPU time by thread, memory by share.
 *
 * Nanoseconds come from the scheduler's own count, user and system time from ticks of 10 ms. Memory
 * is the proportional set size (PSS), so that pages shared by workers are counted once. */
#include "bench/fanout_process.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add_children(struct process_tree *tree, pid_t pid)
{
    char path[64];
    FILE *file;
    int child;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
    file = fopen(path, "re");
    if (!file)
        return;
    while (tree->count < (int)(sizeof(tree->pids) / sizeof(tree->pids[0])) &&
           fscanf(file, "%d", &child) == 1)
        tree->pids[tree->count++] = child;
    fclose(file);
}

void process_tree_read(pid_t root, struct process_tree *ret_tree)
{
    ret_tree->count = 0;
    if (root <= 0)
        return;
    ret_tree->pids[ret_tree->count++] = root;
    for (int i = 0; i < ret_tree->count; i++)
        add_children(ret_tree, ret_tree->pids[i]);
}

static uint64_t thread_ns(pid_t pid, const char *thread)
{
    char path[300];
    uint64_t ns = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", pid, thread);
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%" SCNu64, &ns) != 1)
        ns = 0;
    fclose(file);
    return ns;
}

static uint64_t all_threads_ns(pid_t pid)
{
    char path[64];
    struct dirent *entry;
    uint64_t ns = 0;
    DIR *folder;

    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    folder = opendir(path);
    if (!folder)
        return 0;
    while ((entry = readdir(folder))) {
        if (isdigit((unsigned char)entry->d_name[0]))
            ns += thread_ns(pid, entry->d_name);
    }
    closedir(folder);
    return ns;
}

static void add_ticks(pid_t pid, struct process_cpu *cpu)
{
    uint64_t user, sys, tick_ms = 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
    char path[64], line[1024];
    const char *behind_name;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    file = fopen(path, "re");
    if (!file)
        return;
    behind_name = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
    if (behind_name &&
        sscanf(behind_name, ") %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64 " %" SCNu64,
               &user, &sys) == 2) {
        cpu->user_ms += user * tick_ms;
        cpu->sys_ms += sys * tick_ms;
    }
    fclose(file);
}

void process_cpu_read(const struct process_tree *tree, struct process_cpu *ret_cpu)
{
    *ret_cpu = (struct process_cpu){0};
    for (int i = 0; i < tree->count; i++) {
        ret_cpu->all_ns += all_threads_ns(tree->pids[i]);
        add_ticks(tree->pids[i], ret_cpu);
    }
}

uint64_t process_pss_bytes(const struct process_tree *tree)
{
    uint64_t total = 0, kilobytes;
    char path[64], line[256];

    for (int i = 0; i < tree->count; i++) {
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", tree->pids[i]);
        file = fopen(path, "re");
        while (file && fgets(line, sizeof(line), file)) {
            if (sscanf(line, "Pss: %" SCNu64, &kilobytes) == 1)
                total += kilobytes * 1024;
        }
        if (file)
            fclose(file);
    }
    return total;
}
