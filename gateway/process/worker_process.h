/* gateway/process/worker_process.h - the parent's view of a worker: a process that is forked,
 * reports that it can serve, is measured, ends, and may be forked again after a delay. The intake
 * process is treated alike.
 *
 * The supervisor decides what this means for the others. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gateway/process/restart_delay.h"
#include "gateway/metrics/metrics.h"

/* How often a worker reports that its loop is running, and how often the parent checks. */
enum { WORKER_PULSE_MS = 500 };

struct worker_lines;

enum worker_state { WORKER_DOWN, WORKER_STARTING, WORKER_READY };

struct worker_process {
    const struct worker_lines *lines; /* names of its log lines */
    char label[16];                   /* prefix of these lines: "worker=0 " */
    struct metrics *metrics;          /* of its slot */
    enum worker_state state;
    pid_t pid;
    int pidfd;      /* -1: down; readable when the process has ended */
    int ready_pipe; /* the parent's end; -1: it has reported that it is ready, or is down */
    uint64_t started_ms;
    uint64_t retry_ms; /* when down: do not start before this */
    struct restart_delay delay;
    uint64_t pulses;    /* METRIC_WORKER_PULSES at the last check */
    bool has_pulse;     /* its loop has run once: starting may take long */
    uint64_t silent_ms; /* for how long `pulses` has not changed, counting only time in which the
                           parent ran */
};

void worker_process_init(struct worker_process *worker, unsigned index, struct metrics *metrics);
void worker_process_init_intake(struct worker_process *process, struct metrics *metrics);

/* true: in the child, which reports that it is ready by writing a byte to *ret_ready_fd. false: in
 * the parent; the worker is starting, or is still down, which was logged, and will be started after
 * its delay. */
bool worker_process_fork(struct worker_process *worker, int *ret_ready_fd);

/* In any forked child: closes what belongs to the parent. */
void worker_process_detach(struct worker_process *worker);

bool worker_process_is_due(const struct worker_process *worker, uint64_t now_ms);

void worker_process_signal(const struct worker_process *worker, int number);

/* Its ready pipe is readable: returns whether it is ready now. */
bool worker_process_take_ready(struct worker_process *worker, uint64_t now_ms);

/* Its pidfd is readable: it is down, and *ret_how says how it ended. false: it has not ended. */
bool worker_process_reap(struct worker_process *worker, siginfo_t *ret_how);

/* Checks the worker, `elapsed_ms` after the last check. At most two periods of that are counted: if
 * more have passed the parent did not run, and perhaps neither did the worker. true: the worker's
 * loop has not run for `timeout_ms`; the worker was killed, which was logged and counted. */
bool worker_process_kill_if_hung(struct worker_process *worker, uint64_t elapsed_ms,
                                 uint64_t timeout_ms);

/* It ended unexpectedly, `ended` says how: to be restarted after its delay. Logged. */
void worker_process_note_death(struct worker_process *worker, const char *ended, uint64_t now_ms);
/* It ended as it was told to. */
void worker_process_note_stop(const struct worker_process *worker, const char *ended);

/* Measures memory, CPU and descriptors for its metrics. `may_list_files`: see process_usage.h. */
void worker_process_measure(const struct worker_process *worker, bool may_list_files);
