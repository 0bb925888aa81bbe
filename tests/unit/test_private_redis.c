#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/process/private_redis.h"
#include "gateway/process/redis_program.h"
#include "src/redis/redis_address.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/interruptions.h"

enum { DEADLINE_MS = 20000, STOP_MS = 10000 };

static char folder[64]; /* of the running test, for data directories */

static char *in_folder(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static struct private_redis *open_redis(const char *name)
{
    struct private_redis *redis = NULL;
    struct failure failure = {""};

    if (private_redis_new(in_folder(name), "redis-server", &redis, &failure) < 0)
        fail_msg("%s", failure.text);
    return redis;
}

/* Steps until Redis answers (0) or cannot be started. */
static int run_until_answers(struct private_redis *redis, struct failure *failure)
{
    uint64_t end_ms = clock_monotonic_ms() + DEADLINE_MS;
    bool answers = false;

    while (clock_monotonic_ms() < end_ms) {
        struct pollfd process;
        int r = private_redis_step(redis, clock_monotonic_ms(), &answers, failure);

        if (r < 0 || answers)
            return r;
        process = (struct pollfd){.fd = private_redis_fd(redis), .events = POLLIN};
        poll(&process, 1, 10);
    }
    fail_msg("Redis does not answer");
    return -1;
}

static struct private_redis *started_redis(const char *name)
{
    struct private_redis *redis = open_redis(name);
    struct failure failure = {""};

    if (run_until_answers(redis, &failure) < 0)
        fail_msg("%s", failure.text);
    return redis;
}

static int connect_to(const struct private_redis *redis)
{
    struct sockaddr_un peer = {.sun_family = AF_UNIX};
    struct sl_redis_address address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(sl_redis_address_parse(sl_slice_str(private_redis_url(redis)), &address, NULL),
                     0);
    memcpy(peer.sun_path, address.path, sizeof(peer.sun_path));
    if (connect(fd, (struct sockaddr *)&peer, sizeof(peer)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Returns the reply to one inline command, as far as one read returns it. */
static const char *ask(const struct private_redis *redis, const char *command)
{
    static char reply[8192];
    int fd = connect_to(redis);
    ssize_t got;

    assert_true(fd >= 0);
    assert_true(dprintf(fd, "%s\r\n", command) > 0);
    got = read(fd, reply, sizeof(reply) - 1);
    reply[got > 0 ? got : 0] = '\0';
    close(fd);
    return reply;
}

static pid_t redis_pid(const struct private_redis *redis)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    int fd = connect_to(redis);

    assert_true(fd >= 0);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
    close(fd);
    return peer.pid;
}

static void stop_redis(struct private_redis *redis)
{
    private_redis_stop(redis, STOP_MS);
    private_redis_free(redis);
}

static void wait_for_death(const struct private_redis *redis)
{
    struct pollfd process = {.fd = private_redis_fd(redis), .events = POLLIN};

    assert_int_equal(poll(&process, 1, DEADLINE_MS), 1);
}

static void test_redis_runs_by_itself_and_in_private(void **state)
{
    struct private_redis *redis = started_redis("deep/er/data");
    pid_t pid = redis_pid(redis);
    struct stat status;

    (void)state;
    assert_int_equal(getsid(pid), pid);
    assert_int_equal(stat(in_folder("deep/er/data"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_int_equal(stat(in_folder("deep/er/data/redis.sock"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_non_null(strstr(ask(redis, "CONFIG GET port"), "\r\n0\r\n"));
    assert_non_null(strstr(ask(redis, "CONFIG GET appendonly"), "\r\nyes\r\n"));
    assert_non_null(strstr(ask(redis, "CONFIG GET maxmemory-policy"), "noeviction"));
    assert_non_null(strstr(ask(redis, "CONFIG GET save"), "$0\r\n\r\n"));
    assert_non_null(strstr(ask(redis, "CONFIG GET zset-max-ziplist-entries"), "\r\n512\r\n"));
    assert_int_equal(private_redis_restarts(redis), 0);
    stop_redis(redis);
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(errno, ESRCH);
}

static void test_data_survive_a_stop(void **state)
{
    struct private_redis *redis = started_redis("data");

    (void)state;
    assert_string_equal(ask(redis, "SET color blue"), "+OK\r\n");
    stop_redis(redis);
    redis = started_redis("data");
    assert_string_equal(ask(redis, "GET color"), "$4\r\nblue\r\n");
    stop_redis(redis);
}

static void test_redis_holds_no_descriptor_of_its_parent(void **state)
{
    struct private_redis *redis;
    char byte;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0); /* without O_CLOEXEC, like a ready descriptor */
    redis = started_redis("data");
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    close(ends[0]);
    stop_redis(redis);
}

static void test_a_directory_serves_one_sluiced(void **state)
{
    struct private_redis *redis = open_redis("data"), *second = NULL;
    struct failure failure;
    char expected[256];

    (void)state;
    assert_int_equal(private_redis_new(in_folder("data"), "redis-server", &second, &failure),
                     -EBUSY);
    snprintf(expected, sizeof(expected),
             "the directory '%s/data' is in use by another sluiced (pid %d)", folder,
             (int)getpid());
    assert_string_equal(failure.text, expected);
    assert_null(second);
    private_redis_free(redis);
    redis = open_redis("data");
    private_redis_free(redis);
}

static void test_redis_of_a_crashed_sluiced_is_adopted(void **state)
{
    struct private_redis *redis = started_redis("data");
    pid_t pid = redis_pid(redis);

    (void)state;
    private_redis_free(redis); /* a crash: nobody stops Redis */
    redis = started_redis("data");
    assert_int_equal(redis_pid(redis), pid);
    stop_redis(redis);
    assert_int_equal(access(in_folder("data/redis.sock"), F_OK), -1);
}

static void test_redis_that_is_only_starting_is_adopted_too(void **state)
{
    struct private_redis *redis = open_redis("data");
    struct failure failure = {""};
    bool answers;
    pid_t pid;

    (void)state;
    assert_int_equal(private_redis_step(redis, clock_monotonic_ms(), &answers, &failure), 0);
    assert_true(private_redis_fd(redis) >= 0);
    private_redis_free(redis);
    redis = open_redis("data");
    assert_int_equal(run_until_answers(redis, &failure), 0);
    pid = redis_pid(redis);
    assert_string_equal(ask(redis, "SET color blue"), "+OK\r\n");
    private_redis_free(redis);
    redis = started_redis("data");
    assert_int_equal(redis_pid(redis), pid);
    assert_string_equal(ask(redis, "GET color"), "$4\r\nblue\r\n");
    stop_redis(redis);
}

static void test_killed_redis_comes_back_with_its_data(void **state)
{
    struct private_redis *redis = started_redis("data");
    struct failure failure = {""};

    (void)state;
    assert_string_equal(ask(redis, "SET color blue"), "+OK\r\n");
    kill(redis_pid(redis), SIGKILL);
    wait_for_death(redis);
    assert_int_equal(run_until_answers(redis, &failure), 0);
    assert_int_equal(private_redis_restarts(redis), 1);
    assert_string_equal(ask(redis, "GET color"), "$4\r\nblue\r\n");
    stop_redis(redis);
}

static void test_adopted_redis_comes_back_too(void **state)
{
    struct private_redis *redis = started_redis("data");
    struct failure failure = {""};
    pid_t pid = redis_pid(redis);

    (void)state;
    private_redis_free(redis);
    redis = started_redis("data");
    kill(pid, SIGKILL);
    wait_for_death(redis);
    assert_int_equal(run_until_answers(redis, &failure), 0);
    assert_int_not_equal(redis_pid(redis), pid);
    stop_redis(redis);
}

static void test_restarts_are_held_back_when_redis_keeps_dying(void **state)
{
    struct private_redis *redis = started_redis("data");
    struct failure failure = {""};
    bool answers;
    uint64_t now_ms;

    (void)state;
    kill(redis_pid(redis), SIGKILL);
    wait_for_death(redis);
    assert_int_equal(run_until_answers(redis, &failure), 0);
    kill(redis_pid(redis), SIGKILL);
    wait_for_death(redis);
    now_ms = clock_monotonic_ms();
    assert_int_equal(private_redis_step(redis, now_ms, &answers, &failure), 0);
    assert_int_equal(private_redis_fd(redis), -1);
    assert_int_equal(private_redis_step(redis, now_ms + 99, &answers, &failure), 0);
    assert_int_equal(private_redis_fd(redis), -1);
    assert_int_equal(private_redis_step(redis, now_ms + 100, &answers, &failure), 0);
    assert_true(private_redis_fd(redis) >= 0);
    stop_redis(redis);
}

static pid_t stopped_pid;

static void let_go_on(unsigned times)
{
    if (times == 3)
        kill(stopped_pid, SIGCONT);
}

static void test_interrupted_question_is_answered_all_the_same(void **state)
{
    struct private_redis *redis = started_redis("data");
    char reply[64];
    int fd = connect_to(redis);

    (void)state;
    stopped_pid = redis_pid(redis);
    kill(stopped_pid, SIGSTOP);
    interruptions_begin(let_go_on);
    redis_program_ping(fd, reply, sizeof(reply));
    interruptions_end();
    assert_string_equal(reply, "+PONG");
    close(fd);
    stop_redis(redis);
}

static void test_redis_that_does_not_stop_is_killed(void **state)
{
    struct private_redis *redis = started_redis("data");
    pid_t pid = redis_pid(redis);

    (void)state;
    kill(pid, SIGSTOP);
    private_redis_stop(redis, 50);
    private_redis_free(redis);
    assert_int_equal(kill(pid, 0), -1);
}

/* The fork holds the lock, and would hold it as long as it writes. */
static void test_fork_that_rewrites_the_log_goes_with_its_redis(void **state)
{
    struct private_redis *redis = started_redis("data");
    struct failure failure = {""};
    uint64_t end_ms = clock_monotonic_ms() + DEADLINE_MS;

    (void)state;
    assert_string_equal(ask(redis, "SET color blue"), "+OK\r\n");
    assert_string_equal(ask(redis, "CONFIG SET rdb-key-save-delay 600000000"), "+OK\r\n");
    assert_non_null(strstr(ask(redis, "BGREWRITEAOF"), "started"));
    while (!strstr(ask(redis, "INFO persistence"), "aof_rewrite_in_progress:1"))
        assert_true(clock_monotonic_ms() < end_ms);
    kill(redis_pid(redis), SIGKILL);
    wait_for_death(redis);
    assert_int_equal(run_until_answers(redis, &failure), 0);
    assert_string_equal(ask(redis, "GET color"), "$4\r\nblue\r\n");
    stop_redis(redis);
}

static void test_redis_that_cannot_start_is_told_with_its_own_words(void **state)
{
    struct private_redis *redis;
    struct failure failure = {""};
    int fd;

    (void)state;
    redis = open_redis("data");
    fd = open(in_folder("data/appendonlydir"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(run_until_answers(redis, &failure), -EIO);
    assert_non_null(strstr(failure.text, "redis-server ended with status 1: "));
    assert_non_null(strstr(failure.text, "appendonlydir"));
    assert_non_null(strstr(failure.text, "data/redis.log)"));
    private_redis_free(redis);
}

static void test_missing_program_is_named(void **state)
{
    struct private_redis *redis = NULL;
    struct failure failure = {""};

    (void)state;
    assert_int_equal(private_redis_new(in_folder("data"), "no-such-redis", &redis, &failure), 0);
    assert_int_equal(run_until_answers(redis, &failure), -ENOENT);
    assert_string_equal(failure.text,
                        "cannot start 'no-such-redis': No such file or directory (install it, or "
                        "name a Redis with the option redis)");
    private_redis_free(redis);
}

static void test_unusable_directories_are_refused(void **state)
{
    struct private_redis *redis = NULL;
    struct failure failure = {""};
    char expected[256];

    (void)state;
    assert_int_equal(private_redis_new("/dev/null/data", "redis-server", &redis, &failure),
                     -ENOTDIR);
    assert_string_equal(failure.text,
                        "cannot make the directory '/dev/null/data': Not a directory");

    assert_int_equal(private_redis_new(in_folder("a-directory-with-a-name-of-just-so-many-letters-"
                                                 "that-no-unix-socket-fits-into-it-any-more"),
                                       "redis-server", &redis, &failure),
                     -ENAMETOOLONG);
    snprintf(expected, sizeof(expected), "is too long by %zu bytes for a unix socket in it",
             strlen(in_folder("a-directory-with-a-name-of-just-so-many-letters-that-no-unix-socket-"
                              "fits-into-it-any-more")) +
                 strlen("/redis.sock") - 107);
    assert_non_null(strstr(failure.text, expected));
    assert_null(redis);
}

static void test_new_survives_each_failed_allocation(void **state)
{
    (void)state;
    for (uint64_t n = 0;; n++) {
        struct private_redis *redis = NULL;
        struct failure failure = {""};
        int r;

        mem_fail_after(n);
        r = private_redis_new(in_folder("data"), "redis-server", &redis, &failure);
        mem_fail_never();
        private_redis_free(redis);
        if (r == 0)
            break;
        assert_int_equal(r, -ENOMEM);
        assert_null(redis);
    }
}

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/sluice-test-redis-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

/* First stops a Redis that a failed test left running. */
static int remove_folder(void **state)
{
    struct private_redis *redis = NULL;
    char command[128];
    bool answers;

    (void)state;
    if (access(in_folder("data/redis.sock"), F_OK) == 0 &&
        private_redis_new(in_folder("data"), "redis-server", &redis, NULL) == 0) {
        private_redis_step(redis, clock_monotonic_ms(), &answers, NULL);
        stop_redis(redis);
    }
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    return system(command);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_redis_runs_by_itself_and_in_private),
        TEST(test_data_survive_a_stop),
        TEST(test_redis_holds_no_descriptor_of_its_parent),
        TEST(test_a_directory_serves_one_sluiced),
        TEST(test_redis_of_a_crashed_sluiced_is_adopted),
        TEST(test_redis_that_is_only_starting_is_adopted_too),
        TEST(test_killed_redis_comes_back_with_its_data),
        TEST(test_adopted_redis_comes_back_too),
        TEST(test_restarts_are_held_back_when_redis_keeps_dying),
        TEST(test_interrupted_question_is_answered_all_the_same),
        TEST(test_redis_that_does_not_stop_is_killed),
        TEST(test_fork_that_rewrites_the_log_goes_with_its_redis),
        TEST(test_redis_that_cannot_start_is_told_with_its_own_words),
        TEST(test_missing_program_is_named),
        TEST(test_unusable_directories_are_refused),
        TEST(test_new_survives_each_failed_allocation),
    };

    log_set_level(LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
