/* gateway/process/supervisor_parts.h - internal to supervisor.
 *
 *     supervisor.c        the parent: handles events, and what is due
 *     supervisor_child.c  a forked process: what it closes, and what it runs */
#pragma once

#include <poll.h>
#include <signal.h>

#include "gateway/metrics/monitor.h"
#include "gateway/process/key_process.h"
#include "gateway/process/start_notice.h"
#include "gateway/process/supervisor.h"
#include "gateway/process/task_runner.h"
#include "gateway/process/worker_process.h"

struct supervisor {
    const struct supervisor_settings *settings;
    struct worker_process *workers; /* followed by the intake process, if there is one */
    uint32_t gateway;               /* a random number for the whole instance */
    unsigned worker_count;
    unsigned process_count; /* workers and intake process */
    bool intake_is_told;    /* it was told to end */
    struct side_process tasks;
    struct key_process keys;
    struct pollfd *polled; /* signals, Redis, tasks, takeover, keys, then two for each of them */
    pid_t pid;
    int signal_fd;
    struct start_notice notice;
    sigset_t outer_mask;
    struct takeover *takeover; /* NULL: nobody can ask for our sockets */
    bool is_open;              /* workers accept as soon as they run */
    bool has_successor;
    bool all_were_ready;
    bool redis_answers;  /* always true for a Redis that is not private */
    bool redis_answered; /* at least once: workers may start */
    bool stopping;
    bool killed; /* the workers, after a second signal or their time limit */
    uint64_t stop_by_ms;
    struct monitor *monitor;
    uint64_t monitor_ms;    /* time of its next check */
    uint64_t measure_ms;    /* time of the next measurement of the processes */
    uint64_t looked_ms;     /* time of the last check for hanging workers */
    uint64_t list_files_ms; /* when descriptors may be listed again */
    struct failure failure;
    int error; /* the first failure, and its message */
};

/* NULL: there is none. */
struct worker_process *supervisor_intake(const struct supervisor *supervisor);
const char *supervisor_redis_url(const struct supervisor *supervisor);
/* Closes the listeners and sets them to -1. */
void supervisor_close_listeners(struct instance *instance);

/* Run in the child: close what belongs to the parent, then run as this worker or intake process,
 * run tasks, or fetch keys. Return the exit status. */
int supervisor_child_worker(struct supervisor *supervisor, unsigned index, int ready_fd);
int supervisor_child_tasks(struct supervisor *supervisor);
int supervisor_child_keys(struct supervisor *supervisor);
