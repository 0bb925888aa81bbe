/* supervisor.c - a loop around poll(2): signals, pidfds, ready pipes, and the next timeout.
 *
 * What is due is determined in each turn from the state of each worker; nothing is done in signal
 * handlers. Processes that end too early are restarted after an increasing delay. Stopping has
 * steps with time limits: workers are told, those that take longer than drain-timeout plus a grace
 * period are killed, and the private Redis is stopped last. No memory grows. */
#include "gateway/process/supervisor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/close_fd.h"
#include "base/log.h"
#include "gateway/config/config_reload.h"
#include "gateway/front/admission.h"
#include "gateway/front/fair_use_exchange.h"
#include "gateway/http/listener.h"
#include "gateway/intake/broadcast.h"
#include "gateway/metrics/slow_board.h"
#include "gateway/process/process_end.h"
#include "gateway/process/service_manager.h"
#include "gateway/process/supervisor_parts.h"

enum {
    MOST_FIRST_CRASHES = 5,
    REDIS_STEP_MS = 10,
    REDIS_STOP_MS = 10000,
    MEASURE_EVERY_MS = 2000,
    LIST_FILES_EVERY_MS = 30000, /* if the kernel does not report their number */
    FIRST_WORKER_FD = 5          /* index in `polled` */
};

__attribute__((format(printf, 3, 4))) static void fail(struct supervisor *supervisor, int error,
                                                       const char *format, ...)
{
    va_list args;

    if (supervisor->error != 0)
        return;
    supervisor->error = error;
    va_start(args, format);
    vsnprintf(supervisor->failure.text, sizeof(supervisor->failure.text), format, args);
    va_end(args);
}

static void note(struct supervisor *supervisor, enum verdict_level level, const char *name,
                 const char *text)
{
    monitor_note(supervisor->monitor, level, name, text, clock_wall_ms());
}

static void start_due_workers(struct supervisor *supervisor, uint64_t now_ms)
{
    int ready_fd;

    if (supervisor->stopping || !supervisor->redis_answered)
        return;
    for (unsigned i = 0; i < supervisor->process_count; i++) {
        if (worker_process_is_due(&supervisor->workers[i], now_ms) &&
            worker_process_fork(&supervisor->workers[i], &ready_fd))
            exit(supervisor_child_worker(supervisor, i, ready_fd));
    }
    if (supervisor_intake(supervisor))
        metric_set(metrics_supervisor(supervisor->settings->board), METRIC_INTAKE_UP,
                   supervisor_intake(supervisor)->state != WORKER_DOWN);
}

static void start_due_task_runner(struct supervisor *supervisor, uint64_t now_ms)
{
    pid_t pid;

    if (supervisor->stopping || !supervisor->redis_answered ||
        !task_runner_is_wanted(supervisor->settings->config) ||
        !side_process_is_down(&supervisor->tasks) || now_ms < supervisor->tasks.retry_ms)
        return;
    if (supervisor->tasks.started_ms > 0)
        metric_add(metrics_supervisor(supervisor->settings->board), METRIC_TASK_RUNNER_RESTARTS, 1);
    fflush(NULL); /* otherwise the child would print it again */
    pid = fork();
    if (pid == 0)
        exit(supervisor_child_tasks(supervisor));
    side_process_forked(&supervisor->tasks, pid, now_ms);
}

static void start_due_key_process(struct supervisor *supervisor, uint64_t now_ms)
{
    pid_t pid;

    if (supervisor->stopping || !key_process_is_due(&supervisor->keys, now_ms))
        return;
    fflush(NULL); /* otherwise the child would print it again */
    pid = fork();
    if (pid == 0)
        exit(supervisor_child_keys(supervisor));
    side_process_forked(&supervisor->keys.process, pid, now_ms);
    metric_set(metrics_supervisor(supervisor->settings->board), METRIC_KEY_FETCHER_UP,
               !side_process_is_down(&supervisor->keys.process));
}

static void note_key_process_end(struct supervisor *supervisor, uint64_t now_ms)
{
    struct metrics_board *board = supervisor->settings->board;

    if (key_process_note_end(&supervisor->keys, supervisor->stopping, metrics_keys(board), now_ms))
        metric_add(metrics_supervisor(board), METRIC_KEY_FETCHER_RESTARTS, 1);
    metric_set(metrics_supervisor(board), METRIC_KEY_FETCHER_UP, 0);
}

static void signal_workers(const struct supervisor *supervisor, int number)
{
    for (unsigned i = 0; i < supervisor->worker_count; i++)
        worker_process_signal(&supervisor->workers[i], number);
}

/* From here on new connections are refused, or wait for the successor. */
static void begin_to_stop(struct supervisor *supervisor, uint64_t now_ms)
{
    const struct supervisor_settings *settings = supervisor->settings;

    supervisor->stopping = true;
    takeover_free(supervisor->takeover);
    supervisor->takeover = NULL;
    if (!supervisor->has_successor)
        service_manager_tell("STOPPING=1");
    supervisor->stop_by_ms =
        now_ms + settings->config->drain_timeout_ms + supervisor->settings->grace_ms;
    signal_workers(supervisor, supervisor->has_successor ? GATEWAY_SIGNAL_REPLACED : SIGTERM);
    side_process_signal(&supervisor->tasks, SIGTERM);
    side_process_signal(&supervisor->keys.process, SIGTERM);
    supervisor_close_listeners(settings->instance);
}

static void kill_workers(struct supervisor *supervisor)
{
    supervisor->killed = true;
    signal_workers(supervisor, SIGKILL);
    if (supervisor_intake(supervisor))
        worker_process_signal(supervisor_intake(supervisor), SIGKILL);
    side_process_signal(&supervisor->tasks, SIGKILL);
    side_process_signal(&supervisor->keys.process, SIGKILL);
}

/* The parent reads the settings first: if it refuses them, nothing changes. */
static void reload(struct supervisor *supervisor)
{
    struct buffer left = BUFFER_INIT;
    struct failure failure = {"out of memory"};
    char room[LOG_QUOTE_SIZE];

    if (config_reload(supervisor->settings->config, &left, &failure) < 0) {
        log_error("reload_refused", "why=%s", log_quote(sl_slice_str(failure.text), room));
        note(supervisor, VERDICT_WARNING, "reload",
             "The settings were not read again, and stay as they were: the log says why.");
    } else {
        if (left.size > 2)
            log_warn("restart_needed", "options=%s",
                     log_quote(sl_slice_from(buffer_slice(&left), 2), room));
        note(supervisor, VERDICT_NOTE, "reload", "The settings were read again.");
        log_info("reloaded", "workers=%u", supervisor->worker_count);
        key_process_reload(&supervisor->keys, supervisor->settings->config);
        signal_workers(supervisor, SIGHUP);
    }
    buffer_done(&left);
}

static void read_signals(struct supervisor *supervisor, uint64_t now_ms)
{
    struct signalfd_siginfo signals[8];
    ssize_t got;

    got = read(supervisor->signal_fd, signals, sizeof(signals));
    for (ssize_t i = 0; i < got / (ssize_t)sizeof(signals[0]); i++) {
        int number = (int)signals[i].ssi_signo;

        log_info("signal", "name=SIG%s from=%u", sigabbrev_np(number), signals[i].ssi_pid);
        if (number == SIGHUP)
            reload(supervisor);
        else if (!supervisor->stopping)
            begin_to_stop(supervisor, now_ms);
        else
            kill_workers(supervisor);
    }
}

static void serve_takeovers(struct supervisor *supervisor)
{
    struct failure failure;

    if (supervisor->settings->instance->data_dir &&
        takeover_new(supervisor->settings->instance->data_dir, &supervisor->takeover, &failure) < 0)
        log_warn("no_takeover", "why=\"%s\"", failure.text);
}

static void start_new_listeners(const struct listener *listener, unsigned inherited)
{
    for (unsigned i = inherited; i < listener->count; i++) {
        int r = listener_start(listener->sockets[i]);

        if (r < 0)
            log_error("cannot_listen", "port=%u socket=%u error=\"%s\"", listener->port, i,
                      strerror(-r));
    }
}

/* All workers can serve: they start accepting, and the predecessor leaves. */
static void start_accepting(struct supervisor *supervisor)
{
    const struct supervisor_settings *settings = supervisor->settings;

    for (unsigned i = 0; i < LISTENER_COUNT; i++)
        start_new_listeners(&settings->instance->listeners[i], settings->instance->inherited[i]);
    supervisor->is_open = true;
    signal_workers(supervisor, GATEWAY_SIGNAL_OPEN);
    serve_takeovers(supervisor);
    if (settings->instance->private_redis)
        private_redis_sign(settings->instance->private_redis);
}

/* Whoever is told that we are ready may read the history at once, so it is updated first. */
static void tell_everybody(struct supervisor *supervisor)
{
    struct instance *instance = supervisor->settings->instance;
    const struct start_facts facts = {
        .listeners = instance->listeners,
        .redis_url = supervisor_redis_url(supervisor),
        .workers = supervisor->worker_count,
        .pid = supervisor->pid,
    };

    start_notice_tell_manager(&facts);
    if (instance->has_predecessor)
        handover_confirm(&instance->handover);
    note(supervisor, VERDICT_NOTE, "start",
         instance->has_predecessor ? "sluiced " SLUICE_VERSION
                                     " took over from another; earlier history is not available."
                                   : "sluiced " SLUICE_VERSION " started.");
    start_notice_tell(&supervisor->notice, &facts);
}

static void note_ready(struct supervisor *supervisor, struct worker_process *worker,
                       uint64_t now_ms)
{
    if (!worker_process_take_ready(worker, now_ms) || worker == supervisor_intake(supervisor))
        return;
    supervisor->measure_ms = supervisor->list_files_ms = now_ms;
    if (supervisor->all_were_ready)
        return;
    for (unsigned i = 0; i < supervisor->worker_count; i++) {
        if (supervisor->workers[i].state != WORKER_READY)
            return;
    }
    supervisor->all_were_ready = true;
    if (!supervisor->is_open)
        start_accepting(supervisor);
    tell_everybody(supervisor);
}

/* A worker that exits with an error before all have served has reported a problem with the
 * settings, and would do so again. So would one that always crashes. */
static bool is_hopeless(const struct supervisor *supervisor, const struct worker_process *worker,
                        const siginfo_t *how)
{
    if (supervisor->all_were_ready)
        return false;
    return how->si_code == CLD_EXITED ? how->si_status != EXIT_SUCCESS
                                      : worker->delay.early_ends >= MOST_FIRST_CRASHES - 1;
}

static bool ended_as_told(const struct supervisor *supervisor, const siginfo_t *how)
{
    if (how->si_code == CLD_EXITED)
        return how->si_status == EXIT_SUCCESS;
    return supervisor->killed || how->si_status == SIGTERM ||
           how->si_status == GATEWAY_SIGNAL_REPLACED; /* it had not installed its handler yet */
}

/* `streams`: how many it had. */
static void judge_end(struct supervisor *supervisor, struct worker_process *worker,
                      const siginfo_t *how, uint64_t streams, uint64_t now_ms)
{
    char ended[PROCESS_END_SIZE], name[32] = "the intake process";

    process_end_describe(how, ended);
    if (worker != supervisor_intake(supervisor))
        snprintf(name, sizeof(name), "worker %u", (unsigned)(worker - supervisor->workers));
    if (supervisor->stopping) {
        if (!ended_as_told(supervisor, how))
            fail(supervisor, -EIO, "%s ended %s", name, ended);
        worker_process_note_stop(worker, ended);
        return;
    }
    if (is_hopeless(supervisor, worker, how)) {
        fail(supervisor, -EIO, "%s ended %s before it was ready", name, ended);
        begin_to_stop(supervisor, now_ms);
        return;
    }
    worker_process_note_death(worker, ended, now_ms);
    monitor_note_death(supervisor->monitor, name, ended, streams, clock_wall_ms());
}

/* The workers notice by themselves that they receive nothing. */
static void note_intake_end(struct supervisor *supervisor, bool is_restarted)
{
    struct metrics *metrics = metrics_supervisor(supervisor->settings->board);

    broadcast_reset(supervisor->settings->broadcast);
    metric_set(metrics, METRIC_INTAKE_UP, 0);
    metric_add(metrics, METRIC_INTAKE_RESTARTS, is_restarted);
}

static void note_end(struct supervisor *supervisor, struct worker_process *worker, uint64_t now_ms)
{
    unsigned index = (unsigned)(worker - supervisor->workers);
    uint64_t streams = metric_get(worker->metrics, METRIC_STREAMS);
    siginfo_t how;

    if (!worker_process_reap(worker, &how))
        return;
    if (worker == supervisor_intake(supervisor)) {
        note_intake_end(supervisor, !supervisor->stopping);
    } else {
        admission_forget_worker(supervisor->settings->admission, index);
        if (supervisor->settings->uses)
            fair_use_mark_all(supervisor->settings->uses); /* the dead worker's streams no longer
                                                              count */
        slow_board_forget_worker(supervisor->settings->slow_board, index);
    }
    judge_end(supervisor, worker, &how, streams, now_ms);
}

static void step_redis(struct supervisor *supervisor, uint64_t now_ms)
{
    struct private_redis *redis = supervisor->settings->instance->private_redis;
    struct failure failure;
    int r;

    if (!redis || supervisor->stopping)
        return;
    r = private_redis_step(redis, now_ms, &supervisor->redis_answers, &failure);
    if (r < 0) {
        fail(supervisor, r, "%s", failure.text);
        begin_to_stop(supervisor, now_ms);
        return;
    }
    if (supervisor->redis_answers)
        supervisor->redis_answered = true;
    metric_set(metrics_supervisor(supervisor->settings->board), METRIC_PRIVATE_REDIS_RESTARTS,
               private_redis_restarts(redis));
}

static void step_takeover(struct supervisor *supervisor, uint64_t now_ms)
{
    const struct supervisor_settings *settings = supervisor->settings;
    const struct takeover_offer offer = {
        .listeners = settings->instance->listeners,
        .lock = settings->instance->private_redis
                    ? private_redis_lock(settings->instance->private_redis)
                    : -1,
    };

    if (!supervisor->takeover || !takeover_step(supervisor->takeover, &offer))
        return;
    supervisor->has_successor = true;
    begin_to_stop(supervisor, now_ms);
}

/* A metric with a line for each worker is a separate family for the intake process. */
static void measure_intake(const struct supervisor *supervisor)
{
    const struct metrics *slot = metrics_intake(supervisor->settings->board);
    struct metrics *ours = metrics_supervisor(supervisor->settings->board);

    if (!supervisor_intake(supervisor))
        return;
    metric_set(ours, METRIC_INTAKE_RESIDENT, metric_get(slot, METRIC_WORKER_RESIDENT));
    metric_set(ours, METRIC_INTAKE_CPU, metric_get(slot, METRIC_WORKER_CPU));
    metric_set(ours, METRIC_INTAKE_HANGS, metric_get(slot, METRIC_WORKER_HANGS));
}

static void measure_workers(struct supervisor *supervisor, uint64_t now_ms)
{
    bool may_list_files;

    if (now_ms < supervisor->measure_ms)
        return;
    supervisor->measure_ms = now_ms + MEASURE_EVERY_MS;
    may_list_files = now_ms >= supervisor->list_files_ms;
    if (may_list_files)
        supervisor->list_files_ms = now_ms + LIST_FILES_EVERY_MS;
    for (unsigned i = 0; i < supervisor->process_count; i++)
        worker_process_measure(&supervisor->workers[i], may_list_files);
    measure_intake(supervisor);
}

static void monitor(struct supervisor *supervisor, uint64_t now_ms)
{
    const struct config *config = supervisor->settings->config;
    const struct reading_bounds bounds = {.most = {
                                              [MEMORY_EVENTS] = config->max_shared_bytes,
                                              [MEMORY_FILTERS] = config->max_filter_bytes,
                                              [MEMORY_HOME] = config->max_home_bytes,
                                              [MEMORY_STREAMS] = config->max_connections,
                                          }};

    if (now_ms < supervisor->monitor_ms)
        return;
    supervisor->monitor_ms = now_ms + MONITOR_LOOK_MS;
    monitor_look(supervisor->monitor, &bounds, now_ms, clock_wall_ms());
}

/* While stopping, the workers have another time limit. */
static bool watches_pulses(const struct supervisor *supervisor)
{
    return supervisor->settings->config->worker_timeout_ms > 0 && !supervisor->stopping;
}

static void kill_hung_workers(struct supervisor *supervisor, uint64_t now_ms)
{
    uint64_t elapsed_ms = now_ms - supervisor->looked_ms;

    if (elapsed_ms < WORKER_PULSE_MS)
        return;
    supervisor->looked_ms = now_ms;
    for (unsigned i = 0; watches_pulses(supervisor) && i < supervisor->process_count; i++)
        worker_process_kill_if_hung(&supervisor->workers[i], elapsed_ms,
                                    supervisor->settings->config->worker_timeout_ms);
}

static bool workers_are_down(const struct supervisor *supervisor)
{
    for (unsigned i = 0; i < supervisor->worker_count; i++) {
        if (supervisor->workers[i].state != WORKER_DOWN)
            return false;
    }
    return true;
}

static bool intake_is_down(const struct supervisor *supervisor)
{
    return !supervisor_intake(supervisor) || supervisor_intake(supervisor)->state == WORKER_DOWN;
}

static bool all_are_down(const struct supervisor *supervisor)
{
    return workers_are_down(supervisor) && intake_is_down(supervisor) &&
           side_process_is_down(&supervisor->tasks) &&
           side_process_is_down(&supervisor->keys.process);
}

/* Ends the intake process when no worker is left. */
static void end_intake(struct supervisor *supervisor)
{
    if (!supervisor->stopping || supervisor->intake_is_told || intake_is_down(supervisor) ||
        !workers_are_down(supervisor))
        return;
    supervisor->intake_is_told = true;
    worker_process_signal(supervisor_intake(supervisor), SIGTERM);
}

static void enforce_deadline(struct supervisor *supervisor, uint64_t now_ms)
{
    if (!supervisor->stopping || supervisor->killed || now_ms < supervisor->stop_by_ms)
        return;
    if (!side_process_is_down(&supervisor->tasks))
        log_warn("task_runner_killed",
                 "why=\"what it still had to do is done after the next start\"");
    if (!workers_are_down(supervisor) || !intake_is_down(supervisor))
        fail(supervisor, -ETIMEDOUT, "a worker did not end in time and was killed");
    kill_workers(supervisor);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t next_due_ms(const struct supervisor *supervisor, uint64_t now_ms)
{
    uint64_t due_ms = supervisor->measure_ms;

    if (supervisor->stopping)
        return supervisor->killed ? UINT64_MAX
                                  : sooner(supervisor->stop_by_ms, supervisor->monitor_ms);
    due_ms = sooner(due_ms, supervisor->monitor_ms);
    if (watches_pulses(supervisor))
        due_ms = sooner(due_ms, supervisor->looked_ms + WORKER_PULSE_MS);
    if (!supervisor->redis_answers)
        due_ms = sooner(due_ms, now_ms + REDIS_STEP_MS);
    for (unsigned i = 0; i < supervisor->process_count; i++) {
        if (supervisor->workers[i].state == WORKER_DOWN && supervisor->redis_answered)
            due_ms = sooner(due_ms, supervisor->workers[i].retry_ms);
    }
    if (task_runner_is_wanted(supervisor->settings->config) &&
        side_process_is_down(&supervisor->tasks) && supervisor->redis_answered)
        due_ms = sooner(due_ms, supervisor->tasks.retry_ms);
    if (supervisor->keys.is_wanted && side_process_is_down(&supervisor->keys.process))
        due_ms = sooner(due_ms, supervisor->keys.process.retry_ms);
    return due_ms;
}

static void wait_for_something(struct supervisor *supervisor)
{
    struct private_redis *redis = supervisor->settings->instance->private_redis;
    uint64_t now_ms = clock_monotonic_ms();
    uint64_t due_ms = next_due_ms(supervisor, now_ms);
    struct pollfd *polled = supervisor->polled;
    unsigned count = FIRST_WORKER_FD + 2 * supervisor->process_count;
    int timeout_ms = -1;

    polled[0] = (struct pollfd){.fd = supervisor->signal_fd, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = redis && !supervisor->stopping ? private_redis_fd(redis) : -1,
                                .events = POLLIN};
    polled[2] = (struct pollfd){.fd = supervisor->tasks.pidfd, .events = POLLIN};
    polled[3] = (struct pollfd){.fd = supervisor->takeover ? takeover_fd(supervisor->takeover) : -1,
                                .events = POLLIN};
    polled[4] = (struct pollfd){.fd = supervisor->keys.process.pidfd, .events = POLLIN};
    for (unsigned i = 0; i < supervisor->process_count; i++) {
        struct worker_process *worker = &supervisor->workers[i];

        polled[FIRST_WORKER_FD + 2 * i] =
            (struct pollfd){.fd = worker->ready_pipe, .events = POLLIN};
        polled[FIRST_WORKER_FD + 2 * i + 1] =
            (struct pollfd){.fd = worker->pidfd, .events = POLLIN};
    }
    if (due_ms != UINT64_MAX)
        timeout_ms = due_ms > now_ms ? (int)sooner(due_ms - now_ms, 3600000) : 0;
    if (poll(polled, count, timeout_ms) < 0) {
        for (unsigned i = 0; i < count; i++)
            polled[i].revents = 0; /* temporarily out of memory: what is due is done */
    }
}

static void turn(struct supervisor *supervisor)
{
    uint64_t now_ms;

    wait_for_something(supervisor);
    now_ms = clock_monotonic_ms();
    if (supervisor->polled[0].revents)
        read_signals(supervisor, now_ms);
    if (supervisor->polled[2].revents)
        side_process_note_end(&supervisor->tasks, supervisor->stopping, now_ms);
    if (supervisor->polled[3].revents)
        step_takeover(supervisor, now_ms);
    if (supervisor->polled[4].revents)
        note_key_process_end(supervisor, now_ms);
    for (unsigned i = 0; i < supervisor->process_count; i++) {
        if (supervisor->polled[FIRST_WORKER_FD + 2 * i].revents)
            note_ready(supervisor, &supervisor->workers[i], now_ms);
        if (supervisor->polled[FIRST_WORKER_FD + 2 * i + 1].revents)
            note_end(supervisor, &supervisor->workers[i], now_ms);
    }
    step_redis(supervisor, now_ms);
    start_due_workers(supervisor, now_ms);
    start_due_task_runner(supervisor, now_ms);
    start_due_key_process(supervisor, now_ms);
    measure_workers(supervisor, now_ms);
    monitor(supervisor, now_ms);
    kill_hung_workers(supervisor, now_ms);
    end_intake(supervisor);
    enforce_deadline(supervisor, now_ms);
}

static int take_signals(struct supervisor *supervisor)
{
    sigset_t ours;

    sigemptyset(&ours);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGHUP);
    sigprocmask(SIG_BLOCK, &ours, &supervisor->outer_mask);
    signal(SIGPIPE, SIG_IGN);
    supervisor->signal_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    return supervisor->signal_fd < 0 ? -errno : 0;
}

static int prepare(struct supervisor *supervisor, struct failure *reterr)
{
    unsigned count = supervisor->process_count, workers = supervisor->worker_count;
    int r;

    r = start_notice_init(&supervisor->notice, supervisor->settings->config,
                          supervisor->settings->started_fd, reterr);
    if (r < 0)
        return r;
    supervisor->workers = mem_zalloc(mem_array_size(count, sizeof(*supervisor->workers)));
    supervisor->polled =
        mem_zalloc(mem_array_size(FIRST_WORKER_FD + 2 * count, sizeof(*supervisor->polled)));
    supervisor->monitor =
        monitor_new(supervisor->settings->board, supervisor->settings->slow_board,
                    supervisor->settings->history, supervisor_intake(supervisor) != NULL);
    if (!supervisor->workers || !supervisor->polled || !supervisor->monitor)
        return failure_set(reterr, -ENOMEM, "out of memory");
    for (unsigned i = 0; i < workers; i++)
        worker_process_init(&supervisor->workers[i], i,
                            metrics_slot(supervisor->settings->board, i));
    if (supervisor_intake(supervisor))
        worker_process_init_intake(supervisor_intake(supervisor),
                                   metrics_intake(supervisor->settings->board));
    r = take_signals(supervisor);
    if (r < 0)
        return failure_set(reterr, r, "cannot receive signals: %s", strerror(-r));
    return 0;
}

int supervisor_run(const struct supervisor_settings *settings, struct failure *reterr)
{
    struct supervisor supervisor = {
        .settings = settings,
        .gateway = (uint32_t)hash_key_random().k0,
        .worker_count = metrics_workers(settings->board),
        .process_count = metrics_workers(settings->board) + (settings->broadcast ? 1 : 0),
        .pid = getpid(),
        .tasks = {.lines = &task_runner_lines, .pidfd = -1},
        .signal_fd = -1,
        .looked_ms = clock_monotonic_ms(),
        .is_open = !settings->instance->has_predecessor,
        .redis_answers = !settings->instance->private_redis,
        .redis_answered = !settings->instance->private_redis,
    };
    int r;

    key_process_init(&supervisor.keys, settings->config);
    r = prepare(&supervisor, reterr);
    if (r < 0)
        goto out;
    if (supervisor.is_open)
        serve_takeovers(&supervisor);
    metric_set(metrics_supervisor(settings->board), METRIC_START_TIME, clock_wall_ms() * 1000);
    while (!supervisor.stopping || !all_are_down(&supervisor))
        turn(&supervisor);
    if (settings->instance->private_redis && supervisor.is_open && !supervisor.has_successor)
        private_redis_stop(settings->instance->private_redis, REDIS_STOP_MS);
    r = supervisor.error;
    if (r < 0)
        failure_set(reterr, r, "%s", supervisor.failure.text);
out:
    takeover_free(supervisor.takeover);
    start_notice_done(&supervisor.notice);
    /* The signals stay blocked, so that another one does not interrupt the end. */
    close_fd(&supervisor.signal_fd);
    monitor_free(supervisor.monitor);
    mem_free(supervisor.polled);
    mem_free(supervisor.workers);
    return r;
}
