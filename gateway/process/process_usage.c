#include "gateway/process/process_usage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The fields in proc(5)'s stat follow the program's name, which may contain spaces and brackets. So
 * the last bracket is searched. */
static int read_stat(pid_t pid, struct process_usage *usage)
{
    unsigned long user, system;
    long resident_pages;
    char text[1024];
    const char *fields;
    ssize_t got;
    int fd;

    snprintf(text, sizeof(text), "/proc/%d/stat", (int)pid);
    fd = open(text, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    got = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    fields = strrchr(text, ')');
    if (!fields || sscanf(fields,
                          ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d "
                          "%*d %*d %*u %*u %ld",
                          &user, &system, &resident_pages) != 3)
        return -ESRCH;
    usage->cpu_us = ((uint64_t)user + system) * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
    usage->resident_bytes = (uint64_t)resident_pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return 0;
}

int process_usage_read(pid_t pid, struct process_usage *ret_usage)
{
    struct process_usage usage;
    int r = read_stat(pid, &usage);

    if (r == 0)
        *ret_usage = usage;
    return r;
}

static int list_files(const char *path, uint64_t *ret_count)
{
    DIR *folder = opendir(path);
    uint64_t count = 0;

    if (!folder)
        return -errno;
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder))
        count += entry->d_name[0] != '.';
    closedir(folder);
    *ret_count = count;
    return 0;
}

int process_usage_count_files(pid_t pid, bool may_list, uint64_t *ret_count)
{
    struct stat status;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    if (stat(path, &status) < 0)
        return -errno;
    if (status.st_size == 0)
        return may_list ? list_files(path, ret_count) : -EAGAIN;
    *ret_count = (uint64_t)status.st_size;
    return 0;
}
