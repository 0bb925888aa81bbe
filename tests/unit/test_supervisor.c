#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "gateway/front/admission.h"
#include "gateway/http/listener.h"
#include "gateway/metrics/slow_board.h"
#include "gateway/process/process_usage.h"
#include "gateway/process/supervisor.h"
#include "gateway/process/worker_process.h"
#include "tests/support/cmocka_all.h"

enum { DEADLINE_MS = 20000, MAX_WORKERS = 4 };

/* The supervisor runs in a child of the test, its workers below that. They report what they do as
 * lines of text: "up 0 1234", "term 0", "hup 0". */
struct scene {
    struct config *config;
    struct metrics_board *board;
    struct admission *admission;
    struct slow_board *slow_board;
    struct history *history;
    int listeners[MAX_WORKERS];
    uint16_t port;
    unsigned workers;
    int report[2]; /* lines from the workers */
    int ready[2];  /* the ready descriptor */
    char data_dir[64];
    unsigned *starts; /* of any worker; in shared memory */
    pid_t supervisor;
    int (*worker_main)(const struct gateway_parts *parts);
};

static struct scene scene;

__attribute__((format(printf, 1, 2))) static void report(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vdprintf(scene.report[1], format, args);
    va_end(args);
}

/* Workers */

static void block_signals(sigset_t *ret_signals)
{
    sigemptyset(ret_signals);
    sigaddset(ret_signals, SIGTERM);
    sigaddset(ret_signals, SIGHUP);
    sigprocmask(SIG_BLOCK, ret_signals, NULL);
}

static void say_ready(const struct gateway_parts *parts)
{
    report("up %u %d\n", parts->worker, (int)getpid());
    if (write(parts->ready_fd, "r", 1) != 1)
        _exit(3);
}

static int good_worker(const struct gateway_parts *parts)
{
    sigset_t signals;
    int number;

    __atomic_add_fetch(scene.starts, 1, __ATOMIC_RELAXED);
    block_signals(&signals);
    metric_add(metrics_slot(parts->board, parts->worker), METRIC_CONNECTIONS, 5);
    metric_add(metrics_slot(parts->board, parts->worker), METRIC_SENDS, 1);
    say_ready(parts);
    for (;;) {
        sigwait(&signals, &number);
        report("%s %u\n", number == SIGTERM ? "term" : "hup", parts->worker);
        if (number == SIGTERM)
            return 0;
    }
}

/* Takes three of the four places for streams, and never frees one. */
static int streaming_worker(const struct gateway_parts *parts)
{
    const struct admission_limits limits = {.streams = 4};
    admission_ticket ticket;

    for (int i = 0; i < 3; i++) {
        if (admission_enter(parts->admission, &limits, parts->worker, SL_SLICE("a"), SL_SLICE("b"),
                            &ticket) != ADMISSION_GRANTED)
            report("full\n");
    }
    return good_worker(parts);
}

static int crashing_worker(const struct gateway_parts *parts)
{
    (void)parts;
    return raise(SIGKILL);
}

static int deaf_worker(const struct gateway_parts *parts)
{
    sigset_t signals;

    block_signals(&signals);
    say_ready(parts);
    return sigsuspend(&signals);
}

static int refusing_worker(const struct gateway_parts *parts)
{
    if (parts->worker == 1)
        return 1;
    return good_worker(parts);
}

/* Before it is ready: then new settings are not the cause of a crash. */
static int crash_once_worker(const struct gateway_parts *parts)
{
    if (__atomic_load_n(scene.starts, __ATOMIC_RELAXED) == 0) {
        __atomic_add_fetch(scene.starts, 1, __ATOMIC_RELAXED);
        raise(SIGKILL);
    }
    return good_worker(parts);
}

/* The first one accepts nothing, its successor one connection. */
static int late_worker(const struct gateway_parts *parts)
{
    int client;

    if (__atomic_add_fetch(scene.starts, 1, __ATOMIC_RELAXED) > 1) {
        fcntl(parts->listeners[LISTENER_PUBLIC].sockets[0], F_SETFL, 0);
        client = accept(parts->listeners[LISTENER_PUBLIC].sockets[0], NULL, NULL);
        if (client >= 0 && write(client, "served", 6) == 6)
            close(client);
        __atomic_sub_fetch(scene.starts, 1, __ATOMIC_RELAXED);
    }
    return good_worker(parts);
}

static int redis_worker(const struct gateway_parts *parts)
{
    report("redis %s\n", parts->redis_url);
    return good_worker(parts);
}

/* The fixture */

static void scene_read_config(const char *const *options)
{
    /* Read again on SIGHUP, long afterwards. */
    static char program[] = "sluiced", option[] = "--ready-fd", ready_fd[16];
    static char *argv[32];
    static char *const environment[] = {NULL};
    struct failure failure = {""};
    int argc = 0;

    argv[argc++] = program;
    snprintf(ready_fd, sizeof(ready_fd), "%d", scene.ready[1]);
    argv[argc++] = option;
    argv[argc++] = ready_fd;
    argv[argc++] = (char *)"--worker-timeout"; /* these workers have no event loop */
    argv[argc++] = (char *)"0s";
    for (; *options; options++)
        argv[argc++] = (char *)*options;
    if (config_read(argc, argv, environment, &scene.config, &failure) < 0)
        fail_msg("%s", failure.text);
}

/* What main() does between reading the settings and starting the supervisor; in the child. */
static int run_supervisor(void)
{
    struct supervisor_settings settings = {
        .config = scene.config,
        .board = scene.board,
        .admission = scene.admission,
        .slow_board = scene.slow_board,
        .history = scene.history,
        .started_fd = -1,
        .grace_ms = 50,
        .worker_main = scene.worker_main,
    };
    struct instance instance = INSTANCE_INIT;
    struct failure failure = {""};
    int r = 0;

    close(scene.ready[0]);
    close(scene.report[0]);
    if (!scene.config->redis)
        r = private_redis_new(scene.data_dir, "redis-server", &instance.private_redis, &failure);
    memcpy(instance.listeners[LISTENER_PUBLIC].sockets, scene.listeners, sizeof(scene.listeners));
    instance.listeners[LISTENER_PUBLIC].count = scene.workers;
    instance.listeners[LISTENER_PUBLIC].port = scene.port;
    settings.instance = &instance;
    if (r == 0)
        r = supervisor_run(&settings, &failure);
    if (r < 0)
        report("failed: %s\n", failure.text);
    instance_done(&instance);
    return r < 0;
}

/* Starts everything; `options`: NULL-terminated. */
static void play(unsigned workers, int (*worker_main)(const struct gateway_parts *),
                 const char *const *options)
{
    struct listen_address address = {.host = "127.0.0.1"};

    scene.workers = workers;
    scene.worker_main = worker_main;
    assert_int_equal(pipe(scene.ready), 0);
    assert_int_equal(pipe2(scene.report, O_CLOEXEC), 0);
    scene_read_config(options);
    scene.board = metrics_board_new(workers);
    scene.admission = admission_new(4, workers);
    scene.slow_board = slow_board_new(workers);
    scene.history = history_new();
    assert_non_null(scene.admission);
    assert_non_null(scene.slow_board);
    assert_non_null(scene.history);
    assert_int_equal(listener_open(&address, workers, scene.listeners, &scene.port, NULL), 0);
    fflush(NULL);
    scene.supervisor = fork();
    assert_true(scene.supervisor >= 0);
    if (scene.supervisor == 0)
        _exit(run_supervisor());
    close(scene.ready[1]);
    close(scene.report[1]);
    for (unsigned i = 0; i < workers; i++)
        close(scene.listeners[i]);
}

/* Returns the next line from a pipe; empty at its end. */
static const char *next_line(int fd)
{
    static char line[256];
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    size_t size = 0;

    while (size < sizeof(line) - 1) {
        if (poll(&waiting, 1, DEADLINE_MS) != 1)
            fail_msg("nothing more came after \"%.*s\"", (int)size, line);
        if (read(fd, line + size, 1) != 1 || line[size] == '\n')
            break;
        size++;
    }
    line[size] = '\0';
    return line;
}

static void expect_line(const char *expected)
{
    assert_string_equal(next_line(scene.report[0]), expected);
}

/* Waits until `count` workers are up; returns their process ids by worker. */
static void expect_up(unsigned count, pid_t ret_pids[MAX_WORKERS])
{
    for (unsigned i = 0; i < count; i++) {
        unsigned worker;
        int pid;

        assert_int_equal(sscanf(next_line(scene.report[0]), "up %u %d", &worker, &pid), 2);
        assert_true(worker < MAX_WORKERS);
        ret_pids[worker] = pid;
    }
}

static void expect_ready(void)
{
    char expected[128];

    snprintf(expected, sizeof(expected),
             "{\"port\":%u,\"redis\":\"redis://127.0.0.1:1/3\",\"pid\":%d}", scene.port,
             (int)scene.supervisor);
    assert_string_equal(next_line(scene.ready[0]), expected);
    assert_string_equal(next_line(scene.ready[0]), ""); /* and it is closed */
}

static int exit_status(void)
{
    int status;

    assert_int_equal(waitpid(scene.supervisor, &status, 0), scene.supervisor);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static const char *const elsewhere[] = {"--redis", "redis://u:secret@127.0.0.1:1/3", NULL};

/* Tests */

static void test_ready_is_told_once_when_every_worker_is(void **state)
{
    pid_t pids[MAX_WORKERS];

    (void)state;
    play(3, good_worker, elsewhere);
    expect_ready();
    expect_up(3, pids);
    kill(scene.supervisor, SIGTERM);
    assert_int_equal(exit_status(), 0);
}

static void stop_with(int number)
{
    pid_t pids[MAX_WORKERS];

    play(1, good_worker, elsewhere);
    expect_ready();
    expect_up(1, pids);
    assert_int_not_equal(getpgid(pids[0]), getpgid(scene.supervisor));
    kill(scene.supervisor, SIGHUP);
    expect_line("hup 0");
    kill(scene.supervisor, number);
    expect_line("term 0");
    expect_line(""); /* no process is left that could report anything */
    assert_int_equal(exit_status(), 0);
}

static void test_sighup_and_sigterm_are_passed_on_and_the_exit_is_clean(void **state)
{
    (void)state;
    stop_with(SIGTERM);
}

static void test_sigint_stops_like_sigterm(void **state)
{
    (void)state;
    stop_with(SIGINT);
}

static void test_crashed_worker_is_replaced_and_its_gauges_are_forgotten(void **state)
{
    pid_t pids[MAX_WORKERS], successor[MAX_WORKERS];

    (void)state;
    play(2, good_worker, elsewhere);
    expect_ready();
    expect_up(2, pids);
    assert_int_equal(metrics_sum(scene.board, METRIC_CONNECTIONS), 10);
    kill(pids[1], SIGKILL);
    expect_up(1, successor);
    assert_int_not_equal(successor[1], pids[1]);
    assert_int_equal(metrics_sum(scene.board, METRIC_CONNECTIONS), 10);
    assert_int_equal(metrics_sum(scene.board, METRIC_SENDS), 3);
    assert_int_equal(metric_get(metrics_slot(scene.board, 0), METRIC_WORKER_RESTARTS), 0);
    assert_int_equal(metric_get(metrics_slot(scene.board, 1), METRIC_WORKER_RESTARTS), 1);
    assert_int_equal(kill(pids[0], 0), 0);
    kill(scene.supervisor, SIGTERM);
    assert_int_equal(exit_status(), 0);
    assert_int_equal(metrics_sum(scene.board, METRIC_CONNECTIONS), 0);
    assert_int_equal(metrics_sum(scene.board, METRIC_WORKER_UP), 0);
}

static void test_streams_of_a_crashed_worker_are_forgotten(void **state)
{
    pid_t pids[MAX_WORKERS];

    (void)state;
    play(1, streaming_worker, elsewhere);
    expect_up(1, pids);
    kill(pids[0], SIGKILL);
    expect_up(1, pids);
    kill(scene.supervisor, SIGTERM);
    assert_int_equal(exit_status(), 0);
}

static void test_connections_of_a_crashed_worker_wait_for_its_successor(void **state)
{
    struct sockaddr_in server = {.sin_family = AF_INET};
    struct pollfd waiting;
    pid_t pids[MAX_WORKERS];
    char answer[8] = "";
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    play(1, late_worker, elsewhere);
    expect_ready();
    expect_up(1, pids);
    server.sin_port = htons(scene.port);
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(client, (struct sockaddr *)&server, sizeof(server)), 0);
    kill(pids[0], SIGKILL);
    waiting = (struct pollfd){.fd = client, .events = POLLIN};
    assert_int_equal(poll(&waiting, 1, DEADLINE_MS), 1);
    assert_int_equal(read(client, answer, 6), 6);
    assert_string_equal(answer, "served");
    close(client);
    expect_up(1, pids);
    kill(scene.supervisor, SIGTERM);
    assert_int_equal(exit_status(), 0);
}

static void test_crash_before_ready_is_tried_again(void **state)
{
    pid_t pids[MAX_WORKERS];

    (void)state;
    play(1, crash_once_worker, elsewhere);
    expect_ready();
    expect_up(1, pids);
    kill(scene.supervisor, SIGTERM);
    assert_int_equal(exit_status(), 0);
}

static void test_worker_that_only_ever_crashes_ends_it_all(void **state)
{
    (void)state;
    play(1, crashing_worker, elsewhere);
    expect_line("failed: worker 0 ended by signal 9 (Killed) before it was ready");
    assert_int_equal(exit_status(), 1);
}

static void test_worker_that_refuses_to_start_ends_it_all(void **state)
{
    (void)state;
    play(2, refusing_worker, elsewhere);
    for (;;) {
        const char *line = next_line(scene.report[0]);

        assert_string_not_equal(line, "");
        if (strncmp(line, "failed", 6) == 0) {
            assert_string_equal(line, "failed: worker 1 ended with status 1 before it was ready");
            break;
        }
    }
    assert_int_equal(exit_status(), 1);
    assert_string_equal(next_line(scene.ready[0]), "");
}

static void test_second_signal_ends_workers_that_hang(void **state)
{
    static const char *const options[] = {"--redis", "redis://127.0.0.1:1/3", "--drain-timeout",
                                          "1h", NULL};
    pid_t pids[MAX_WORKERS];

    (void)state;
    play(2, deaf_worker, options);
    expect_ready();
    expect_up(2, pids);
    kill(scene.supervisor, SIGTERM);
    kill(scene.supervisor, SIGINT);
    assert_int_equal(exit_status(), 0);
    expect_line("");
}

static void test_worker_that_overruns_its_time_is_killed_and_told(void **state)
{
    static const char *const options[] = {"--redis", "redis://127.0.0.1:1/3", "--drain-timeout",
                                          "0", NULL};
    pid_t pids[MAX_WORKERS];

    (void)state;
    play(1, deaf_worker, options);
    expect_ready();
    expect_up(1, pids);
    kill(scene.supervisor, SIGTERM);
    expect_line("failed: a worker did not end in time and was killed");
    assert_int_equal(exit_status(), 1);
}

static void test_workers_end_with_a_supervisor_that_is_killed(void **state)
{
    pid_t pids[MAX_WORKERS];
    int status;

    (void)state;
    play(2, deaf_worker, elsewhere);
    expect_ready();
    expect_up(2, pids);
    kill(scene.supervisor, SIGKILL);
    expect_line(""); /* the last writer has exited */
    assert_int_equal(waitpid(scene.supervisor, &status, 0), scene.supervisor);
}

static void test_ready_descriptor_must_be_open(void **state)
{
    static const char *const options[] = {"--redis", "redis://127.0.0.1:1/3", "--ready-fd", "999",
                                          NULL};

    (void)state;
    play(1, good_worker, options);
    expect_line("failed: --ready-fd: 999 is not an open descriptor");
    assert_int_equal(exit_status(), 1);
}

static void test_private_redis_comes_first_and_goes_last(void **state)
{
    static const char *const options[] = {NULL};
    char expected[256], socket_path[128], command[128];
    pid_t pids[MAX_WORKERS];

    (void)state;
    strcpy(scene.data_dir, "/tmp/sluice-test-super-XXXXXX");
    assert_non_null(mkdtemp(scene.data_dir));
    snprintf(socket_path, sizeof(socket_path), "%s/redis.sock", scene.data_dir);
    play(1, redis_worker, options);
    snprintf(expected, sizeof(expected), "redis unix://%s", socket_path);
    expect_line(expected);
    expect_up(1, pids);
    snprintf(expected, sizeof(expected), "{\"port\":%u,\"redis\":\"unix://%s\",\"pid\":%d}",
             scene.port, socket_path, (int)scene.supervisor);
    assert_string_equal(next_line(scene.ready[0]), expected);
    assert_int_equal(access(socket_path, F_OK), 0);
    kill(scene.supervisor, SIGTERM);
    assert_int_equal(exit_status(), 0);
    assert_int_equal(access(socket_path, F_OK), -1);
    snprintf(command, sizeof(command), "rm -r '%s'", scene.data_dir);
    assert_int_equal(system(command), 0);
}

static void test_private_redis_that_does_not_start_ends_it_all(void **state)
{
    static const char *const options[] = {NULL};
    char path[128], command[128];
    const char *line;

    (void)state;
    strcpy(scene.data_dir, "/tmp/sluice-test-super-XXXXXX");
    assert_non_null(mkdtemp(scene.data_dir));
    snprintf(path, sizeof(path), "%s/appendonlydir", scene.data_dir);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    play(1, good_worker, options);
    line = next_line(scene.report[0]);
    assert_non_null(strstr(line, "failed: redis-server ended with status 1"));
    assert_int_equal(exit_status(), 1);
    snprintf(command, sizeof(command), "rm -r '%s'", scene.data_dir);
    assert_int_equal(system(command), 0);
}

static void test_usage_of_a_process_is_measured(void **state)
{
    struct process_usage before, after;
    uint64_t files_before, files_after;
    int fds[2];

    (void)state;
    assert_int_equal(process_usage_read(getpid(), &before), 0);
    assert_int_equal(process_usage_count_files(getpid(), true, &files_before), 0);
    assert_int_equal(pipe(fds), 0);
    do
        assert_int_equal(process_usage_read(getpid(), &after), 0);
    while (after.cpu_us == before.cpu_us);
    assert_true(after.cpu_us > before.cpu_us);
    assert_true(before.resident_bytes > 100000 && before.resident_bytes < 1u << 30);
    assert_int_equal(process_usage_count_files(getpid(), true, &files_after), 0);
    assert_int_equal(files_after, files_before + 2);
    assert_true(process_usage_read(-1, &after) < 0);
    assert_true(process_usage_count_files(-1, true, &files_after) < 0);
    close(fds[0]);
    close(fds[1]);
}

static int clear_scene(void **state)
{
    (void)state;
    memset(&scene, 0, sizeof(scene));
    scene.starts = mmap(NULL, sizeof(*scene.starts), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return scene.starts == MAP_FAILED ? -1 : 0;
}

/* Ends a supervisor that a failed test left running, by its process id. */
static int leave_scene(void **state)
{
    (void)state;
    if (scene.supervisor > 0 && waitpid(scene.supervisor, NULL, WNOHANG) == 0) {
        kill(scene.supervisor, SIGKILL);
        waitpid(scene.supervisor, NULL, 0);
    }
    if (scene.board) {
        close(scene.report[0]);
        close(scene.ready[0]);
    }
    admission_free(scene.admission);
    slow_board_free(scene.slow_board);
    history_free(scene.history);
    metrics_board_free(scene.board);
    config_free(scene.config);
    munmap(scene.starts, sizeof(*scene.starts));
    return 0;
}

static void test_worker_whose_loop_stands_still_is_killed_but_not_after_a_pause_of_all(void **state)
{
    struct worker_process worker;
    struct metrics_board *board;
    struct metrics *metrics;
    int ready_fd;
    siginfo_t how;

    (void)state;
    board = metrics_board_new(1);
    assert_non_null(board);
    metrics = metrics_slot(board, 0);
    worker_process_init(&worker, 0, metrics);
    assert_false(worker_process_kill_if_hung(&worker, 500, 2000)); /* it is not running */
    if (worker_process_fork(&worker, &ready_fd)) {
        pause();
        _exit(0);
    }
    for (int i = 0; i < 10; i++)
        assert_false(worker_process_kill_if_hung(&worker, 500, 2000)); /* it is starting */
    metric_add(metrics, METRIC_WORKER_PULSES, 1);
    assert_false(worker_process_kill_if_hung(&worker, 500, 2000));
    assert_false(worker_process_kill_if_hung(&worker, 3600000, 2000)); /* the machine slept */
    metric_add(metrics, METRIC_WORKER_PULSES, 1);
    assert_false(worker_process_kill_if_hung(&worker, 500, 2000));
    assert_false(worker_process_kill_if_hung(&worker, 1000, 2000));
    assert_false(worker_process_kill_if_hung(&worker, 999, 2000));
    assert_int_equal(metric_get(metrics, METRIC_WORKER_HANGS), 0);
    assert_true(worker_process_kill_if_hung(&worker, 1, 2000));
    assert_int_equal(metric_get(metrics, METRIC_WORKER_HANGS), 1);
    assert_true(worker_process_reap(&worker, &how));
    assert_int_equal(how.si_status, SIGKILL);
    metrics_board_free(board);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, clear_scene, leave_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_ready_is_told_once_when_every_worker_is),
        TEST(test_sighup_and_sigterm_are_passed_on_and_the_exit_is_clean),
        TEST(test_sigint_stops_like_sigterm),
        TEST(test_crashed_worker_is_replaced_and_its_gauges_are_forgotten),
        TEST(test_streams_of_a_crashed_worker_are_forgotten),
        TEST(test_connections_of_a_crashed_worker_wait_for_its_successor),
        TEST(test_crash_before_ready_is_tried_again),
        TEST(test_worker_that_only_ever_crashes_ends_it_all),
        TEST(test_worker_that_refuses_to_start_ends_it_all),
        TEST(test_second_signal_ends_workers_that_hang),
        TEST(test_worker_that_overruns_its_time_is_killed_and_told),
        TEST(test_workers_end_with_a_supervisor_that_is_killed),
        TEST(test_ready_descriptor_must_be_open),
        TEST(test_private_redis_comes_first_and_goes_last),
        TEST(test_private_redis_that_does_not_start_ends_it_all),
        TEST(test_worker_whose_loop_stands_still_is_killed_but_not_after_a_pause_of_all),
        TEST(test_usage_of_a_process_is_measured),
    };

    log_set_level(LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
