#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "gateway/process/takeover.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/interruptions.h"

enum { DEADLINE_MS = 20000, MOST = LISTENER_COUNT * LISTENERS_MAX };

static char folder[64];
static struct takeover *takeover;
static int sockets[MOST + 1]; /* any descriptors will do; the last one stands for the lock */

static int begin(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/sluice-test-takeover-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    for (int i = 0; i <= MOST; i++)
        sockets[i] = memfd_create("socket", MFD_CLOEXEC);
    return takeover_new(folder, &takeover, NULL);
}

static int end(void **state)
{
    char command[128];

    (void)state;
    takeover_free(takeover);
    for (int i = 0; i <= MOST; i++)
        close(sockets[i]);
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    return system(command);
}

static bool is_same_file(int a, int b)
{
    struct stat first, second;

    return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_ino == second.st_ino;
}

/* What is handed over: the first descriptors are the public listener's, the next ones the
 * operators', the last one is the lock. */
struct estate {
    unsigned listeners, ops_listeners;
    bool has_lock;
    int interrupted[2]; /* a pipe: the successor is interrupted, reports it, and is then served; 0:
                           not */
};

static bool is_as_given(const struct listener *listener, const int *given, unsigned count)
{
    if (listener->count != count)
        return false;
    for (unsigned i = 0; i < count; i++) {
        if (!is_same_file(listener->sockets[i], given[i]) ||
            !(fcntl(listener->sockets[i], F_GETFD) & FD_CLOEXEC))
            return false;
    }
    return true;
}

static int interrupted_fd;

static void tell(unsigned times)
{
    if (times == 3 && write(interrupted_fd, "x", 1) != 1)
        _exit(5);
}

/* In a child process, which is the successor: its exit status is the result. */
static int succeed(const struct estate *estate, bool says_ready)
{
    struct handover handover;
    struct failure failure;

    interrupted_fd = estate->interrupted[1];
    if (interrupted_fd > 0)
        interruptions_begin(tell);
    if (handover_request(folder, &handover, &failure) < 0) {
        printf("%s\n", failure.text);
        fflush(NULL);
        return 1;
    }
    if ((handover.lock >= 0) != estate->has_lock || handover.pid != getppid())
        return 2;
    if (!is_as_given(&handover.listeners[LISTENER_PUBLIC], sockets, estate->listeners) ||
        !is_as_given(&handover.listeners[LISTENER_OPS], sockets + estate->listeners,
                     estate->ops_listeners))
        return 3;
    if (estate->has_lock && !is_same_file(handover.lock, sockets[MOST]))
        return 4;
    if (says_ready)
        handover_confirm(&handover);
    handover_done(&handover);
    return 0;
}

/* Talks to a successor until that ends; returns whether it took over. */
static bool serve_successor(const struct estate *estate, bool says_ready)
{
    struct listener listeners[LISTENER_COUNT] = {{.count = estate->listeners},
                                                 {.count = estate->ops_listeners}};
    const struct takeover_offer offer = {listeners, estate->has_lock ? sockets[MOST] : -1};
    bool is_taken = false, has_spoken = false;
    int status;
    pid_t child;
    char byte;

    memcpy(listeners[LISTENER_PUBLIC].sockets, sockets, estate->listeners * sizeof(int));
    memcpy(listeners[LISTENER_OPS].sockets, sockets + estate->listeners,
           estate->ops_listeners * sizeof(int));
    fflush(NULL);
    child = fork();
    if (child == 0)
        _exit(succeed(estate, says_ready));
    if (estate->interrupted[0] > 0)
        assert_int_equal(read(estate->interrupted[0], &byte, 1), 1);
    while (!is_taken) {
        int before = takeover_fd(takeover);
        struct pollfd waiting = {.fd = before, .events = POLLIN};

        assert_int_equal(poll(&waiting, 1, DEADLINE_MS), 1);
        is_taken = takeover_step(takeover, &offer);
        if (has_spoken && takeover_fd(takeover) != before)
            break; /* it has disconnected */
        has_spoken = has_spoken || takeover_fd(takeover) != before;
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    return is_taken;
}

static void test_successor_gets_every_descriptor_and_takes_over(void **state)
{
    (void)state;
    assert_true(serve_successor(&(struct estate){2, 3, true, {0}}, true));
}

static void test_successor_that_is_interrupted_waits_on(void **state)
{
    struct estate estate = {1, 1, true, {0}};

    (void)state;
    assert_int_equal(pipe(estate.interrupted), 0);
    assert_true(serve_successor(&estate, true));
    close(estate.interrupted[0]);
    close(estate.interrupted[1]);
}

static void test_as_many_as_there_may_be_are_handed_over(void **state)
{
    (void)state;
    assert_true(serve_successor(&(struct estate){LISTENERS_MAX, LISTENERS_MAX, true, {0}}, true));
}

/* An older sluiced, without a listener for operators, sends two numbers. */
static void test_predecessor_that_knows_one_listener_hands_it_over(void **state)
{
    char path[128];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct handover handover;
    union {
        struct cmsghdr alignment;
        char bytes[CMSG_SPACE(sizeof(int))];
    } room = {0};
    char byte = 0;
    struct iovec piece = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = room.bytes,
        .msg_controllen = sizeof(room.bytes),
    };
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);
    char asked[64];
    int listener, peer, status;
    pid_t child;

    (void)state;
    snprintf(path, sizeof(path), "%s/%s", folder, TAKEOVER_SOCKET);
    takeover_free(takeover);
    takeover = NULL;
    strcpy(address.sun_path, path);
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 1), 0);
    fflush(NULL);
    child = fork();
    if (child == 0)
        _exit(handover_request(folder, &handover, NULL) == 0 &&
                      is_as_given(&handover.listeners[LISTENER_PUBLIC], sockets, 1) &&
                      handover.listeners[LISTENER_OPS].count == 0
                  ? 0
                  : 1);
    peer = accept(listener, NULL, NULL);
    assert_true(recv(peer, asked, sizeof(asked), 0) > 0);
    assert_int_equal(send(peer, "1 0", 3, 0), 3);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(control), sockets, sizeof(int));
    assert_int_equal(sendmsg(peer, &message, 0), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(peer);
    close(listener);
}

static void test_successor_that_ends_before_it_serves_changes_nothing(void **state)
{
    const struct listener listeners[LISTENER_COUNT] = {{.sockets = {sockets[0]}, .count = 1}};
    const struct takeover_offer none = {listeners, -1};

    (void)state;
    assert_false(serve_successor(&(struct estate){1, 0, false, {0}}, false));
    assert_false(serve_successor(&(struct estate){3, 1, true, {0}}, false));
    assert_int_equal(takeover_find(folder), getpid());
    assert_false(takeover_step(takeover, &none)); /* one that connects and sends nothing */
    assert_false(takeover_step(takeover, &none));
    assert_true(serve_successor(&(struct estate){3, 0, true, {0}}, true));
}

static void test_nobody_is_found_where_nobody_serves(void **state)
{
    struct handover handover;
    struct failure failure = {""};

    (void)state;
    assert_int_equal(takeover_find("/nonexistent"), 0);
    assert_int_equal(handover_request("/nonexistent", &handover, &failure), -ENOENT);
    takeover_close_in_child(takeover); /* as if it was killed: the file stays */
    takeover = NULL;
    assert_int_equal(takeover_find(folder), 0);
    assert_int_equal(handover_request(folder, &handover, &failure), -ENOENT);
    assert_int_equal(takeover_new(folder, &takeover, &failure), 0);
    assert_int_equal(takeover_find(folder), getpid());
}

static void test_socket_is_for_its_owner_and_goes_with_it(void **state)
{
    struct stat file;
    char path[128];

    (void)state;
    snprintf(path, sizeof(path), "%s/%s", folder, TAKEOVER_SOCKET);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    takeover_free(takeover);
    takeover = NULL;
    assert_int_equal(stat(path, &file), -1);
}

static void test_directory_with_too_long_a_name_is_refused(void **state)
{
    struct takeover *other = NULL;
    struct failure failure = {""};
    char long_path[200];

    (void)state;
    memset(long_path, 'x', sizeof(long_path) - 1);
    long_path[0] = '/';
    long_path[sizeof(long_path) - 1] = '\0';
    assert_int_equal(takeover_new(long_path, &other, &failure), -ENAMETOOLONG);
    assert_non_null(strstr(failure.text, "too long"));
    assert_int_equal(takeover_new("/nonexistent", &other, &failure), -ENOENT);
    mem_fail_after(0);
    assert_int_equal(takeover_new(folder, &other, &failure), -ENOMEM);
    mem_fail_never();
    assert_null(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_successor_gets_every_descriptor_and_takes_over),
        TEST(test_successor_that_is_interrupted_waits_on),
        TEST(test_as_many_as_there_may_be_are_handed_over),
        TEST(test_predecessor_that_knows_one_listener_hands_it_over),
        TEST(test_successor_that_ends_before_it_serves_changes_nothing),
        TEST(test_nobody_is_found_where_nobody_serves),
        TEST(test_socket_is_for_its_owner_and_goes_with_it),
        TEST(test_directory_with_too_long_a_name_is_refused),
    };

    log_set_level(LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
