/* gateway/process/supervisor_parts.h - inside supervisor: what its files share.
 *
 *     supervisor.c        the parent: what happens, and what is due
 *     supervisor_child.c  a process that it has forked: what it lets go of, and what it runs as */
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
    struct worker_process *workers; /* and the intake process, if there is one, behind them */
    uint32_t gateway; /* a random number that stands for all of them */
    unsigned worker_count;
    unsigned process_count; /* of these */
    bool intake_is_told;    /* to end */
    struct side_process tasks;
    struct key_process keys;
    struct pollfd
        *polled; /* signals, Redis, tasks, takeover, keys, then two for each of them */
    pid_t pid;
    int signal_fd;
    struct start_notice notice;
    sigset_t outer_mask;
    struct takeover *takeover; /* NULL: nobody can ask for our sockets */
    bool is_open;              /* workers accept as soon as they run */
    bool has_successor;
    bool all_were_ready;
    bool redis_answers;  /* always true for one that is not ours */
    bool redis_answered; /* once: workers may start */
    bool stopping;
    bool killed; /* the workers, on a second signal or after their time */
    uint64_t stop_by_ms;
    struct monitor *monitor;
    uint64_t monitor_ms;    /* when it looks next */
    uint64_t measure_ms;    /* when to look at the workers' processes next */
    uint64_t looked_ms;     /* for workers that hang, last */
    uint64_t list_files_ms; /* when descriptors may be listed again */
    struct failure failure;
    int error; /* the first thing that went wrong, and its sentence */
};

/* NULL: there is none. */
struct worker_process *supervisor_intake(const struct supervisor *supervisor);
const char *supervisor_redis_url(const struct supervisor *supervisor);
/* Sets them to -1. */
void supervisor_close_listeners(struct instance *instance);

/* In the child: lets go of what is the parent's, then is the process at this place among the
 * workers, or runs tasks, or fetches keys. Return the status to exit with. */
int supervisor_child_worker(struct supervisor *supervisor, unsigned index, int ready_fd);
int supervisor_child_tasks(struct supervisor *supervisor);
int supervisor_child_keys(struct supervisor *supervisor);
