/* supervisor.c - one loop around poll(2): signals, pidfds, ready pipes, and the next time that
 * something is due. What is due is decided anew each turn from the state of each worker; nothing
 * runs in a signal handler. */
#include "gateway/ops/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/config_reload.h"
#include "gateway/front/admission.h"
#include "gateway/ops/backoff.h"
#include "gateway/ops/listener.h"
#include "gateway/ops/process_end.h"
#include "gateway/ops/process_usage.h"
#include "gateway/ops/service_manager.h"
#include "gateway/ops/slow_board.h"
#include "gateway/ops/task_runner.h"
#include "src/redis_address.h"

enum {
    MOST_FIRST_CRASHES = 5,
    REDIS_STEP_MS = 10,
    REDIS_STOP_MS = 10000,
    MEASURE_EVERY_MS = 2000,
    FIRST_WORKER_FD = 4 /* in `polled` */
};

enum state { STATE_DOWN, STATE_STARTING, STATE_READY };

struct worker {
    enum state state;
    pid_t pid;
    int pidfd;      /* -1: down */
    int ready_pipe; /* our end; -1: it has said that it is ready, or is down */
    uint64_t started_ms;
    uint64_t retry_ms; /* when down: not before */
    struct backoff backoff;
};

struct supervisor {
    const struct supervisor_settings *settings;
    struct worker *workers;
    unsigned worker_count;
    struct task_runner tasks;
    struct pollfd *polled; /* signals, Redis, the task runner, takeover, then two for each worker */
    pid_t pid;
    int signal_fd;
    int ready_fd;   /* of the configuration; -1: none, or told */
    int started_fd; /* of the settings; -1: none, or told */
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
    uint64_t measure_ms; /* when to look at the workers' processes next */
    struct failure failure;
    int error; /* the first thing that went wrong, and its sentence */
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

static const char *redis_url(const struct supervisor *supervisor)
{
    if (supervisor->settings->place->private_redis)
        return private_redis_url(supervisor->settings->place->private_redis);
    return supervisor->settings->config->redis;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static struct metrics *slot_of(const struct supervisor *supervisor, const struct worker *worker)
{
    return metrics_slot(supervisor->settings->board, (unsigned)(worker - supervisor->workers));
}

/* In the child: closes the listeners that are not for it. */
static void keep_listeners(struct listeners *listeners, unsigned worker, unsigned workers)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < listeners->count; i++) {
        if (listener_is_for(i, listeners->count, worker, workers))
            listeners->sockets[kept++] = listeners->sockets[i];
        else
            close(listeners->sockets[i]);
    }
    listeners->count = kept;
}

static void close_doors(struct place *place)
{
    for (unsigned i = 0; i < DOOR_COUNT; i++) {
        for (unsigned k = 0; k < place->doors[i].count; k++)
            close_fd(&place->doors[i].sockets[k]);
    }
}

/* In the child: lets go of everything that is the parent's but the listeners. */
static void become_child(struct supervisor *supervisor, const char *name)
{
    const struct supervisor_settings *settings = supervisor->settings;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor->pid)
        exit(EXIT_FAILURE); /* it died before we asked to die with it */
    prctl(PR_SET_NAME, name);
    setpgid(0, 0);            /* a terminal's Ctrl-C is for the parent, who passes it on */
    signal(SIGTTOU, SIG_IGN); /* and yet our log lines may go there */

    for (unsigned i = 0; i < supervisor->worker_count; i++) {
        close_fd(&supervisor->workers[i].pidfd);
        close_fd(&supervisor->workers[i].ready_pipe);
    }
    close_fd(&supervisor->tasks.pidfd);
    close_fd(&supervisor->signal_fd);
    close_fd(&supervisor->ready_fd);
    close_fd(&supervisor->started_fd);
    takeover_let_go(supervisor->takeover);
    if (settings->place->has_predecessor)
        heritage_done(&settings->place->heritage);
    if (settings->place->private_redis)
        private_redis_let_go(settings->place->private_redis);
    signal(SIGHUP, SIG_IGN); /* until it knows what to do with it */
    sigprocmask(SIG_SETMASK, &supervisor->outer_mask, NULL);
}

/* In the child: serves. */
static int run_worker(struct supervisor *supervisor, unsigned index, int ready_fd)
{
    const struct supervisor_settings *settings = supervisor->settings;
    struct gateway_parts parts = {
        .config = settings->config,
        .redis_url = redis_url(supervisor),
        .board = settings->board,
        .admission = settings->admission,
        .slow_board = settings->slow_board,
        .site = settings->site,
        .worker = index,
        .doors = settings->place->doors,
        .accepts_at_once = supervisor->is_open,
        .ready_fd = ready_fd,
    };

    for (unsigned i = 0; i < DOOR_COUNT; i++)
        keep_listeners(&settings->place->doors[i], index, supervisor->worker_count);
    become_child(supervisor, "sluiced-worker");
    return settings->worker_main(&parts);
}

/* No memory, no descriptor, no process: as with a crash, the next try comes after the back-off. */
static void start_worker(struct supervisor *supervisor, struct worker *worker)
{
    uint64_t now_ms = clock_monotonic_ms(); /* asking Redis may have taken a while */
    unsigned index = (unsigned)(worker - supervisor->workers);
    int ready[2] = {-1, -1};
    pid_t pid = -1;

    fflush(NULL); /* or the child says it again */
    if (pipe2(ready, O_CLOEXEC) == 0)
        pid = fork();
    if (pid == 0) {
        close_fd(&ready[0]);
        exit(run_worker(supervisor, index, ready[1]));
    }
    if (pid < 0)
        log_error("worker_not_started", "worker=%u error=\"%s\"", index, strerror(errno));
    close_fd(&ready[1]);
    worker->started_ms = now_ms;
    worker->pidfd = pid > 0 ? pidfd_open(pid, 0) : -1;
    if (worker->pidfd < 0) {
        if (pid > 0) {
            log_error("worker_not_watched", "worker=%u error=\"%s\"", index, strerror(errno));
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
        }
        close_fd(&ready[0]);
        worker->retry_ms = now_ms + backoff_next_ms(&worker->backoff, 0);
        return;
    }
    worker->pid = pid;
    worker->ready_pipe = ready[0];
    worker->state = STATE_STARTING;
    metric_set(slot_of(supervisor, worker), METRIC_WORKER_UP, 1);
    log_info("worker_started", "worker=%u pid=%d", index, (int)pid);
}

static void start_due_workers(struct supervisor *supervisor, uint64_t now_ms)
{
    if (supervisor->stopping || !supervisor->redis_answered)
        return;
    for (unsigned i = 0; i < supervisor->worker_count; i++) {
        struct worker *worker = &supervisor->workers[i];

        if (worker->state == STATE_DOWN && now_ms >= worker->retry_ms)
            start_worker(supervisor, worker);
    }
}

/* In the child: runs tasks. */
static int run_tasks(struct supervisor *supervisor)
{
    const struct supervisor_settings *settings = supervisor->settings;

    become_child(supervisor, "sluice-tasks");
    close_doors(settings->place);
    return task_runner_main(settings->config, redis_url(supervisor));
}

static void start_due_task_runner(struct supervisor *supervisor, uint64_t now_ms)
{
    pid_t pid;

    if (supervisor->stopping || !supervisor->redis_answered ||
        !task_runner_is_wanted(supervisor->settings->config) ||
        !task_runner_is_down(&supervisor->tasks) || now_ms < supervisor->tasks.retry_ms)
        return;
    if (supervisor->tasks.started_ms > 0)
        metric_add(metrics_supervisor(supervisor->settings->board), METRIC_TASK_RUNNER_RESTARTS, 1);
    fflush(NULL); /* or the child says it again */
    pid = fork();
    if (pid == 0)
        exit(run_tasks(supervisor));
    task_runner_forked(&supervisor->tasks, pid, now_ms);
}

static void signal_workers(const struct supervisor *supervisor, int number)
{
    for (unsigned i = 0; i < supervisor->worker_count; i++) {
        if (supervisor->workers[i].state != STATE_DOWN)
            pidfd_send_signal(supervisor->workers[i].pidfd, number, NULL, 0);
    }
}

/* New connections are refused from here on instead of waiting for nobody, or wait for the
 * successor. */
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
    task_runner_signal(&supervisor->tasks, SIGTERM);
    close_doors(settings->place);
}

static void kill_workers(struct supervisor *supervisor)
{
    supervisor->killed = true;
    signal_workers(supervisor, SIGKILL);
    task_runner_signal(&supervisor->tasks, SIGKILL);
}

/* The parent reads first: what it refuses costs nobody anything. */
static void reload(struct supervisor *supervisor)
{
    struct buffer left = BUFFER_INIT;
    struct failure failure = {"out of memory"};
    char room[LOG_QUOTE_SIZE];

    if (config_reload(supervisor->settings->config, &left, &failure) < 0) {
        log_error("reload_refused", "why=%s", log_quote(sl_slice_str(failure.text), room));
    } else {
        if (left.size > 2)
            log_warn("restart_needed", "options=%s",
                     log_quote(sl_slice_from(buffer_slice(&left), 2), room));
        log_info("reloaded", "workers=%u", supervisor->worker_count);
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

/* {"port":8080,"redis":"unix:///...","pid":1234} and the end of the file. */
static void tell_ready(struct supervisor *supervisor)
{
    char shown_url[SL_REDIS_ADDRESS_TEXT_SIZE];
    struct sl_redis_address address;
    const struct listeners *doors = supervisor->settings->place->doors;
    struct buffer line = BUFFER_INIT;

    if (supervisor->ready_fd < 0)
        return;
    if (sl_redis_address_parse(sl_slice_str(redis_url(supervisor)), &address, NULL) == 0) {
        sl_redis_address_print(&address, shown_url, sizeof(shown_url));
        buffer_append_format(&line, "{\"port\":%u,", doors[DOOR_PUBLIC].port);
        if (doors[DOOR_OPS].count > 0)
            buffer_append_format(&line, "\"ops_port\":%u,", doors[DOOR_OPS].port);
        buffer_append_str(&line, "\"redis\":");
        buffer_append_json_string(&line, sl_slice_str(shown_url));
        buffer_append_format(&line, ",\"pid\":%d}\n", (int)supervisor->pid);
    }
    if (line.failed || write(supervisor->ready_fd, line.data, line.size) != (ssize_t)line.size)
        log_warn("ready_fd_not_written", "error=\"%s\"", strerror(errno));
    buffer_done(&line);
    close_fd(&supervisor->ready_fd);
}

static void serve_takeovers(struct supervisor *supervisor)
{
    struct failure failure;

    if (supervisor->settings->place->data_dir &&
        takeover_new(supervisor->settings->place->data_dir, &supervisor->takeover, &failure) < 0)
        log_warn("no_takeover", "why=\"%s\"", failure.text);
}

static void start_new_listeners(const struct listeners *listeners, unsigned inherited)
{
    for (unsigned i = inherited; i < listeners->count; i++) {
        int r = listener_start(listeners->sockets[i]);

        if (r < 0)
            log_error("cannot_listen", "port=%u socket=%u error=\"%s\"", listeners->port, i,
                      strerror(-r));
    }
}

/* All workers could serve: they begin, and the predecessor leaves. */
static void step_into_office(struct supervisor *supervisor)
{
    const struct supervisor_settings *settings = supervisor->settings;

    for (unsigned i = 0; i < DOOR_COUNT; i++)
        start_new_listeners(&settings->place->doors[i], settings->place->inherited[i]);
    supervisor->is_open = true;
    signal_workers(supervisor, GATEWAY_SIGNAL_OPEN);
    serve_takeovers(supervisor);
    if (settings->place->private_redis)
        private_redis_sign(settings->place->private_redis);
}

static void tell_service_manager(const struct supervisor *supervisor)
{
    char state[64];

    snprintf(state, sizeof(state), "MAINPID=%d\nREADY=1", (int)supervisor->pid);
    service_manager_tell(state);
}

static void log_ready(const struct supervisor *supervisor)
{
    const struct listeners *doors = supervisor->settings->place->doors;

    if (doors[DOOR_OPS].count > 0)
        log_info("ready", "port=%u ops_port=%u workers=%u", doors[DOOR_PUBLIC].port,
                 doors[DOOR_OPS].port, supervisor->worker_count);
    else
        log_info("ready", "port=%u workers=%u", doors[DOOR_PUBLIC].port, supervisor->worker_count);
}

static void note_ready(struct supervisor *supervisor, struct worker *worker, uint64_t now_ms)
{
    char byte;

    if (read(worker->ready_pipe, &byte, 1) != 1) {
        close_fd(&worker->ready_pipe); /* its end is near: the pidfd will say so */
        return;
    }
    close_fd(&worker->ready_pipe);
    worker->state = STATE_READY;
    log_info("worker_ready", "worker=%u pid=%d after_ms=%llu",
             (unsigned)(worker - supervisor->workers), (int)worker->pid,
             (unsigned long long)(now_ms - worker->started_ms));
    supervisor->measure_ms = now_ms;
    if (supervisor->all_were_ready)
        return;
    for (unsigned i = 0; i < supervisor->worker_count; i++) {
        if (supervisor->workers[i].state != STATE_READY)
            return;
    }
    supervisor->all_were_ready = true;
    if (!supervisor->is_open)
        step_into_office(supervisor);
    tell_service_manager(supervisor); /* before the predecessor's end can be taken for ours */
    if (supervisor->settings->place->has_predecessor)
        heritage_accept(&supervisor->settings->place->heritage);
    log_ready(supervisor);
    tell_ready(supervisor);
    if (supervisor->started_fd >= 0 && write(supervisor->started_fd, "\n", 1) < 0)
        log_warn("start_not_told", "error=\"%s\"", strerror(errno));
    close_fd(&supervisor->started_fd);
}

/* A worker that leaves with an error before all have served has said what is wrong with the
 * settings, and would say it again. One that only ever crashes is no better. */
static bool is_hopeless(const struct supervisor *supervisor, const struct worker *worker,
                        const siginfo_t *how)
{
    if (supervisor->all_were_ready)
        return false;
    return how->si_code == CLD_EXITED ? how->si_status != EXIT_SUCCESS
                                      : worker->backoff.early_ends >= MOST_FIRST_CRASHES - 1;
}

static bool ended_as_told(const struct supervisor *supervisor, const siginfo_t *how)
{
    if (how->si_code == CLD_EXITED)
        return how->si_status == EXIT_SUCCESS;
    return supervisor->killed || how->si_status == SIGTERM ||
           how->si_status == GATEWAY_SIGNAL_REPLACED; /* not yet listening for it */
}

static void judge_end(struct supervisor *supervisor, struct worker *worker, const siginfo_t *how,
                      uint64_t now_ms)
{
    unsigned index = (unsigned)(worker - supervisor->workers);
    char ended[PROCESS_END_SIZE];
    uint64_t wait_ms;

    process_end_describe(how, ended);
    if (supervisor->stopping) {
        if (!ended_as_told(supervisor, how))
            fail(supervisor, -EIO, "worker %u ended %s", index, ended);
        log_info("worker_stopped", "worker=%u pid=%d ended=\"%s\"", index, (int)worker->pid, ended);
        return;
    }
    if (is_hopeless(supervisor, worker, how)) {
        fail(supervisor, -EIO, "worker %u ended %s before it was ready", index, ended);
        begin_to_stop(supervisor, now_ms);
        return;
    }
    wait_ms = backoff_next_ms(&worker->backoff, now_ms - worker->started_ms);
    worker->retry_ms = now_ms + wait_ms;
    metric_add(slot_of(supervisor, worker), METRIC_WORKER_RESTARTS, 1);
    log_error("worker_died", "worker=%u pid=%d ended=\"%s\" retry_ms=%llu", index, (int)worker->pid,
              ended, (unsigned long long)wait_ms);
}

static void note_end(struct supervisor *supervisor, struct worker *worker, uint64_t now_ms)
{
    siginfo_t how = {0};

    if (waitid(P_PIDFD, (id_t)worker->pidfd, &how, WEXITED) < 0)
        return;
    close_fd(&worker->pidfd);
    close_fd(&worker->ready_pipe);
    worker->state = STATE_DOWN;
    metrics_slot_reset_gauges(slot_of(supervisor, worker));
    admission_forget_worker(supervisor->settings->admission,
                            (unsigned)(worker - supervisor->workers));
    slow_board_forget_worker(supervisor->settings->slow_board,
                             (unsigned)(worker - supervisor->workers));
    judge_end(supervisor, worker, &how, now_ms);
}

static void step_redis(struct supervisor *supervisor, uint64_t now_ms)
{
    struct private_redis *redis = supervisor->settings->place->private_redis;
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
        .doors = settings->place->doors,
        .lock = settings->place->private_redis ? private_redis_lock(settings->place->private_redis)
                                               : -1,
    };

    if (!supervisor->takeover || !takeover_step(supervisor->takeover, &offer))
        return;
    supervisor->has_successor = true;
    begin_to_stop(supervisor, now_ms);
}

static void measure_workers(struct supervisor *supervisor, uint64_t now_ms)
{
    if (now_ms < supervisor->measure_ms)
        return;
    supervisor->measure_ms = now_ms + MEASURE_EVERY_MS;
    for (unsigned i = 0; i < supervisor->worker_count; i++) {
        struct worker *worker = &supervisor->workers[i];
        struct metrics *slot = slot_of(supervisor, worker);
        struct process_usage usage;

        if (worker->state == STATE_DOWN || process_usage_read(worker->pid, &usage) < 0)
            continue;
        metric_set(slot, METRIC_WORKER_CPU, usage.cpu_us);
        metric_set(slot, METRIC_WORKER_RESIDENT, usage.resident_bytes);
        metric_set(slot, METRIC_WORKER_OPEN_FILES, usage.open_files);
    }
}

static bool workers_are_down(const struct supervisor *supervisor)
{
    for (unsigned i = 0; i < supervisor->worker_count; i++) {
        if (supervisor->workers[i].state != STATE_DOWN)
            return false;
    }
    return true;
}

static bool all_are_down(const struct supervisor *supervisor)
{
    return workers_are_down(supervisor) && task_runner_is_down(&supervisor->tasks);
}

static void enforce_deadline(struct supervisor *supervisor, uint64_t now_ms)
{
    if (!supervisor->stopping || supervisor->killed || now_ms < supervisor->stop_by_ms)
        return;
    if (!task_runner_is_down(&supervisor->tasks))
        log_warn("task_runner_killed",
                 "why=\"what it still had to do is done after the next start\"");
    if (!workers_are_down(supervisor))
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
        return supervisor->killed ? UINT64_MAX : supervisor->stop_by_ms;
    if (!supervisor->redis_answers)
        due_ms = sooner(due_ms, now_ms + REDIS_STEP_MS);
    for (unsigned i = 0; i < supervisor->worker_count; i++) {
        if (supervisor->workers[i].state == STATE_DOWN && supervisor->redis_answered)
            due_ms = sooner(due_ms, supervisor->workers[i].retry_ms);
    }
    if (task_runner_is_wanted(supervisor->settings->config) &&
        task_runner_is_down(&supervisor->tasks) && supervisor->redis_answered)
        due_ms = sooner(due_ms, supervisor->tasks.retry_ms);
    return due_ms;
}

static void wait_for_something(struct supervisor *supervisor)
{
    struct private_redis *redis = supervisor->settings->place->private_redis;
    uint64_t now_ms = clock_monotonic_ms();
    uint64_t due_ms = next_due_ms(supervisor, now_ms);
    struct pollfd *polled = supervisor->polled;
    unsigned count = FIRST_WORKER_FD + 2 * supervisor->worker_count;
    int timeout_ms = -1;

    polled[0] = (struct pollfd){.fd = supervisor->signal_fd, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = redis && !supervisor->stopping ? private_redis_fd(redis) : -1,
                                .events = POLLIN};
    polled[2] = (struct pollfd){.fd = supervisor->tasks.pidfd, .events = POLLIN};
    polled[3] = (struct pollfd){.fd = supervisor->takeover ? takeover_fd(supervisor->takeover) : -1,
                                .events = POLLIN};
    for (unsigned i = 0; i < supervisor->worker_count; i++) {
        struct worker *worker = &supervisor->workers[i];

        polled[FIRST_WORKER_FD + 2 * i] =
            (struct pollfd){.fd = worker->ready_pipe, .events = POLLIN};
        polled[FIRST_WORKER_FD + 2 * i + 1] =
            (struct pollfd){.fd = worker->pidfd, .events = POLLIN};
    }
    if (due_ms != UINT64_MAX)
        timeout_ms = due_ms > now_ms ? (int)sooner(due_ms - now_ms, 3600000) : 0;
    if (poll(polled, count, timeout_ms) < 0) {
        for (unsigned i = 0; i < count; i++)
            polled[i].revents = 0; /* out of memory for a moment: what is due goes on */
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
        task_runner_note_end(&supervisor->tasks, supervisor->stopping, now_ms);
    if (supervisor->polled[3].revents)
        step_takeover(supervisor, now_ms);
    for (unsigned i = 0; i < supervisor->worker_count; i++) {
        if (supervisor->polled[FIRST_WORKER_FD + 2 * i].revents)
            note_ready(supervisor, &supervisor->workers[i], now_ms);
        if (supervisor->polled[FIRST_WORKER_FD + 2 * i + 1].revents)
            note_end(supervisor, &supervisor->workers[i], now_ms);
    }
    step_redis(supervisor, now_ms);
    start_due_workers(supervisor, now_ms);
    start_due_task_runner(supervisor, now_ms);
    measure_workers(supervisor, now_ms);
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

static int take_ready_fd(struct supervisor *supervisor, struct failure *reterr)
{
    const struct config *config = supervisor->settings->config;

    if (config->ready_fd == 0)
        return 0;
    if (fcntl((int)config->ready_fd, F_SETFD, FD_CLOEXEC) < 0)
        return config_refuse(config, CONFIG_OPTION_ready_fd, reterr, -EBADF,
                             "%d is not an open descriptor", (int)config->ready_fd);
    supervisor->ready_fd = (int)config->ready_fd;
    return 0;
}

static int prepare(struct supervisor *supervisor, struct failure *reterr)
{
    unsigned count = supervisor->worker_count;
    int r;

    r = take_ready_fd(supervisor, reterr);
    if (r < 0)
        return r;
    supervisor->workers = mem_zalloc(mem_array_size(count, sizeof(*supervisor->workers)));
    supervisor->polled =
        mem_zalloc(mem_array_size(FIRST_WORKER_FD + 2 * count, sizeof(*supervisor->polled)));
    if (!supervisor->workers || !supervisor->polled)
        return failure_set(reterr, -ENOMEM, "out of memory");
    for (unsigned i = 0; i < count; i++)
        supervisor->workers[i].pidfd = supervisor->workers[i].ready_pipe = -1;
    r = take_signals(supervisor);
    if (r < 0)
        return failure_set(reterr, r, "cannot receive signals: %s", strerror(-r));
    return 0;
}

int supervisor_run(const struct supervisor_settings *settings, struct failure *reterr)
{
    struct supervisor supervisor = {
        .settings = settings,
        .worker_count = metrics_workers(settings->board),
        .pid = getpid(),
        .tasks = TASK_RUNNER_INIT,
        .signal_fd = -1,
        .ready_fd = -1,
        .started_fd = settings->started_fd,
        .is_open = !settings->place->has_predecessor,
        .redis_answers = !settings->place->private_redis,
        .redis_answered = !settings->place->private_redis,
    };
    int r;

    r = prepare(&supervisor, reterr);
    if (r < 0)
        goto out;
    if (supervisor.is_open)
        serve_takeovers(&supervisor);
    metric_set(metrics_supervisor(settings->board), METRIC_START_TIME, clock_wall_ms() * 1000);
    while (!supervisor.stopping || !all_are_down(&supervisor))
        turn(&supervisor);
    if (settings->place->private_redis && supervisor.is_open && !supervisor.has_successor)
        private_redis_stop(settings->place->private_redis, REDIS_STOP_MS);
    r = supervisor.error;
    if (r < 0)
        failure_set(reterr, r, "%s", supervisor.failure.text);
out:
    takeover_free(supervisor.takeover);
    close_fd(&supervisor.ready_fd);
    close_fd(&supervisor.started_fd);
    /* The signals stay blocked: one more must not cut the end off. */
    close_fd(&supervisor.signal_fd);
    mem_free(supervisor.polled);
    mem_free(supervisor.workers);
    return r;
}
