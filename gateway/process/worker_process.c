/* worker_process.c - fork(2), a pipe for the byte that reports `ready`, and a pidfd for the end.
 *
 * A pidfd cannot be mistaken for another process, however late its end is noticed. Any failure on
 * the way (out of memory, no descriptor) counts as an end, and the next attempt follows after the
 * same delay. Nothing here blocks; the supervisor's poll(2) says when to call. */
#include "gateway/process/worker_process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/close_fd.h"
#include "base/log.h"
#include "gateway/metrics/health.h"
#include "gateway/process/process_usage.h"

struct worker_lines {
    const char *started, *not_started, *not_watched, *ready, *hangs, *died, *stopped;
};

#define LINES(who)                                                                                 \
    {                                                                                              \
        .started = who "_started", .not_started = who "_not_started",                              \
        .not_watched = who "_not_watched", .ready = who "_ready", .hangs = who "_hangs",           \
        .died = who "_died", .stopped = who "_stopped",                                            \
    }

static const struct worker_lines worker_lines = LINES("worker"), intake_lines = LINES("intake");

void worker_process_init(struct worker_process *worker, unsigned index, struct metrics *metrics)
{
    *worker = (struct worker_process){
        .lines = &worker_lines, .metrics = metrics, .pidfd = -1, .ready_pipe = -1};
    snprintf(worker->label, sizeof(worker->label), "worker=%u ", index);
}

void worker_process_init_intake(struct worker_process *process, struct metrics *metrics)
{
    *process = (struct worker_process){
        .lines = &intake_lines, .metrics = metrics, .pidfd = -1, .ready_pipe = -1};
}

void worker_process_detach(struct worker_process *worker)
{
    close_fd(&worker->pidfd);
    close_fd(&worker->ready_pipe);
}

/* Out of memory, descriptors or processes: as after a crash, the next attempt follows after the
 * delay. */
static void give_up(struct worker_process *worker, const char *event)
{
    log_error(event, "%serror=\"%s\"", worker->label, strerror(errno));
    worker->retry_ms = worker->started_ms + restart_delay_next_ms(&worker->delay, 0);
}

bool worker_process_fork(struct worker_process *worker, int *ret_ready_fd)
{
    int ready[2] = {-1, -1};
    pid_t pid = -1;

    worker->started_ms = clock_monotonic_ms(); /* starting to ask Redis may have taken a while */
    fflush(NULL);                              /* otherwise the child would print it again */
    worker->pulses = metric_get(worker->metrics, METRIC_WORKER_PULSES); /* before its first pulse */
    worker->has_pulse = false;
    worker->silent_ms = 0;
    if (pipe2(ready, O_CLOEXEC) == 0)
        pid = fork();
    if (pid == 0) {
        close_fd(&ready[0]);
        *ret_ready_fd = ready[1];
        return true;
    }
    if (pid < 0)
        give_up(worker, worker->lines->not_started);
    close_fd(&ready[1]);
    worker->pidfd = pid > 0 ? pidfd_open(pid, 0) : -1;
    if (pid > 0 && worker->pidfd < 0) {
        give_up(worker, worker->lines->not_watched);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    if (worker->pidfd < 0) {
        close_fd(&ready[0]);
        return false;
    }
    worker->pid = pid;
    worker->ready_pipe = ready[0];
    worker->state = WORKER_STARTING;
    metric_set(worker->metrics, METRIC_WORKER_UP, 1);
    log_info(worker->lines->started, "%spid=%d", worker->label, (int)pid);
    return false;
}

bool worker_process_is_due(const struct worker_process *worker, uint64_t now_ms)
{
    return worker->state == WORKER_DOWN && now_ms >= worker->retry_ms;
}

void worker_process_signal(const struct worker_process *worker, int number)
{
    if (worker->state != WORKER_DOWN)
        pidfd_send_signal(worker->pidfd, number, NULL, 0);
}

bool worker_process_take_ready(struct worker_process *worker, uint64_t now_ms)
{
    char byte;
    bool is_ready = read(worker->ready_pipe, &byte, 1) == 1;

    close_fd(&worker->ready_pipe);
    if (!is_ready)
        return false; /* it is about to end: the pidfd will report it */
    worker->state = WORKER_READY;
    log_info(worker->lines->ready, "%spid=%d after_ms=%llu", worker->label, (int)worker->pid,
             (unsigned long long)(now_ms - worker->started_ms));
    return true;
}

bool worker_process_reap(struct worker_process *worker, siginfo_t *ret_how)
{
    assert(worker->state != WORKER_DOWN);
    *ret_how = (siginfo_t){0};
    if (waitid(P_PIDFD, (id_t)worker->pidfd, ret_how, WEXITED) < 0)
        return false;
    worker_process_detach(worker);
    worker->state = WORKER_DOWN;
    metrics_slot_reset_gauges(worker->metrics);
    health_forget(worker->metrics);
    return true;
}

bool worker_process_kill_if_hung(struct worker_process *worker, uint64_t elapsed_ms,
                                 uint64_t timeout_ms)
{
    uint64_t pulses = metric_get(worker->metrics, METRIC_WORKER_PULSES);

    if (worker->state == WORKER_DOWN)
        return false;
    if (pulses != worker->pulses) {
        worker->pulses = pulses;
        worker->has_pulse = true;
        worker->silent_ms = 0;
        return false;
    }
    if (!worker->has_pulse)
        return false;
    worker->silent_ms += elapsed_ms < 2 * WORKER_PULSE_MS ? elapsed_ms : 2 * WORKER_PULSE_MS;
    if (worker->silent_ms < timeout_ms)
        return false;
    log_error(worker->lines->hangs, "%spid=%d silent_ms=%llu", worker->label, (int)worker->pid,
              (unsigned long long)worker->silent_ms);
    metric_add(worker->metrics, METRIC_WORKER_HANGS, 1);
    worker->silent_ms = 0; /* it is about to end */
    worker_process_signal(worker, SIGKILL);
    return true;
}

void worker_process_note_death(struct worker_process *worker, const char *ended, uint64_t now_ms)
{
    uint64_t wait_ms = restart_delay_next_ms(&worker->delay, now_ms - worker->started_ms);

    worker->retry_ms = now_ms + wait_ms;
    metric_add(worker->metrics, METRIC_WORKER_RESTARTS, 1);
    log_error(worker->lines->died, "%spid=%d ended=\"%s\" retry_ms=%llu", worker->label,
              (int)worker->pid, ended, (unsigned long long)wait_ms);
}

void worker_process_note_stop(const struct worker_process *worker, const char *ended)
{
    log_info(worker->lines->stopped, "%spid=%d ended=\"%s\"", worker->label, (int)worker->pid,
             ended);
}

void worker_process_measure(const struct worker_process *worker, bool may_list_files)
{
    struct process_usage usage;
    uint64_t open_files;

    if (worker->state == WORKER_DOWN || process_usage_read(worker->pid, &usage) < 0)
        return;
    metric_set(worker->metrics, METRIC_WORKER_CPU, usage.cpu_us);
    metric_set(worker->metrics, METRIC_WORKER_RESIDENT, usage.resident_bytes);
    if (process_usage_count_files(worker->pid, may_list_files, &open_files) == 0)
        metric_set(worker->metrics, METRIC_WORKER_OPEN_FILES, open_files);
}
