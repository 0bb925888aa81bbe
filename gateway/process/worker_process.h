/* gateway/process/worker_process.h - a worker as its parent knows it: a process that is forked,
 * says that it could serve, is measured, ends, and may be forked again after a while. So is the
 * intake process.
 *
 * What that means for the others is for the supervisor to decide. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gateway/process/restart_delay.h"
#include "gateway/metrics/metrics.h"

/* How often a worker tells its parent that its loop comes round, and how often the parent looks. */
enum { WORKER_PULSE_MS = 500 };

struct worker_lines;

enum worker_state { WORKER_DOWN, WORKER_STARTING, WORKER_READY };

struct worker_process {
    const struct worker_lines *lines; /* what is logged of it */
    char label[16];                   /* begins these lines: "worker=0 " */
    struct metrics *metrics;          /* of its slot */
    enum worker_state state;
    pid_t pid;
    int pidfd;      /* -1: down; readable when the process has ended */
    int ready_pipe; /* our end; -1: it has said that it is ready, or is down */
    uint64_t started_ms;
    uint64_t retry_ms; /* when down: not before */
    struct restart_delay delay;
    uint64_t pulses;    /* METRIC_WORKER_PULSES at the last look */
    bool has_pulse;     /* its loop has come round once: starting may take long */
    uint64_t silent_ms; /* how long `pulses` has not moved, in time in which the parent ran */
};

void worker_process_init(struct worker_process *worker, unsigned index, struct metrics *metrics);
void worker_process_init_intake(struct worker_process *process, struct metrics *metrics);

/* true: in the child, which says that it is ready by a byte to *ret_ready_fd. false: in the parent;
 * the worker is starting, or down still, which was logged, and due again after its back-off. */
bool worker_process_fork(struct worker_process *worker, int *ret_ready_fd);

/* In any forked child: closes what is the parent's. */
void worker_process_let_go(struct worker_process *worker);

bool worker_process_is_due(const struct worker_process *worker, uint64_t now_ms);

void worker_process_signal(const struct worker_process *worker, int number);

/* Its ready pipe is readable: whether it is ready now. */
bool worker_process_take_ready(struct worker_process *worker, uint64_t now_ms);

/* Its pidfd is readable: it is down, and *ret_how says how it ended. false: it has not ended. */
bool worker_process_reap(struct worker_process *worker, siginfo_t *ret_how);

/* The parent looks, `elapsed_ms` after the last time. Of that it counts two periods at most: when
 * more have passed it did not run itself, and nor, perhaps, did the worker. true: the worker's
 * loop runs and has not come round for `timeout_ms`; it was killed, which was logged and counted.
 */
bool worker_process_kill_if_hung(struct worker_process *worker, uint64_t elapsed_ms,
                                 uint64_t timeout_ms);

/* It ended without being told, `ended` says how: due again after its back-off. Logged. */
void worker_process_note_death(struct worker_process *worker, const char *ended, uint64_t now_ms);
/* It ended as it was told. */
void worker_process_note_stop(const struct worker_process *worker, const char *ended);

/* Memory, CPU and descriptors, into its metrics. `may_list_files`: process_usage.h says why. */
void worker_process_measure(const struct worker_process *worker, bool may_list_files);
