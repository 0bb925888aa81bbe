/* test_acceptor.c - real connections over loopback, with a real shortage of descriptors: the soft
 * limit is lowered to the number that is open. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "gateway/http/acceptor.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/test_loop.h"
#include "tests/support/peer.h"

enum { CLIENTS = 40, PER_TURN = 16, USER_TIMEOUT_MS = 12345 };

static struct test_loop test_loop;
static struct metrics_board *board;
static struct metrics *metrics;
static struct acceptor *acceptor;
static int listeners[2];
static struct sockaddr_in addresses[2];
static int clients[CLIENTS], served[2 * CLIENTS];
static size_t client_count, served_count;
static struct rlimit limit;

static void on_accepted(void *owner, int fd)
{
    assert_ptr_equal(owner, &served_count);
    assert_true(served_count < 2 * CLIENTS);
    served[served_count++] = fd;
}

static struct acceptor *new_acceptor(void)
{
    const struct acceptor_settings settings = {.loop = &test_loop.uv,
                                               .listeners = listeners,
                                               .listener_count = 2,
                                               .user_timeout_ms = USER_TIMEOUT_MS,
                                               .metrics = metrics,
                                               .accepted = on_accepted,
                                               .owner = &served_count};

    return acceptor_new(&settings);
}

static int begin(void **state)
{
    (void)state;
    test_loop_init(&test_loop, NULL);
    board = metrics_board_new(1);
    metrics = metrics_slot(board, 0);
    for (size_t i = 0; i < 2; i++)
        listeners[i] = peer_listen(&addresses[i]);
    client_count = served_count = 0;
    acceptor = new_acceptor();
    assert_non_null(acceptor);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    return 0;
}

static void restore_descriptors(void)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int end(void **state)
{
    (void)state;
    restore_descriptors();
    acceptor_free(acceptor);
    for (size_t i = 0; i < client_count; i++)
        close(clients[i]);
    for (size_t i = 0; i < served_count; i++)
        close(served[i]);
    close(listeners[0]);
    close(listeners[1]);
    test_loop_done(&test_loop);
    metrics_board_free(board);
    return 0;
}

/* On return they are connected, and in the queue of the listener. */
static void connect_clients(size_t listener, size_t count)
{
    for (; count > 0; count--) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_true(fd >= 0 && client_count < CLIENTS);
        assert_int_equal(
            connect(fd, (struct sockaddr *)&addresses[listener], sizeof(addresses[listener])), 0);
        clients[client_count++] = fd;
    }
}

static void turn(void)
{
    uv_run(&test_loop.uv, UV_RUN_NOWAIT);
}

static uint64_t shed(void)
{
    return metric_get(metrics, METRIC_ACCEPT_EXHAUSTED);
}

/* Makes the lowest free descriptor the limit; open descriptors keep working. */
static void use_up_descriptors(void)
{
    struct rlimit none = limit;
    int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_true(lowest >= 0);
    close(lowest);
    none.rlim_cur = (rlim_t)lowest;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(open("/dev/null", O_RDONLY | O_CLOEXEC), -1);
    assert_int_equal(errno, EMFILE);
}

/* Whether the server has closed the client's connection. */
static bool is_hung_up(int client)
{
    struct pollfd pollfd = {.fd = client, .events = POLLIN};
    char byte;

    return poll(&pollfd, 1, 5000) == 1 && recv(client, &byte, 1, 0) <= 0;
}

static bool is_connected(int client)
{
    char byte;

    return recv(client, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void test_some_are_accepted_in_a_turn_and_all_in_the_end(void **state)
{
    (void)state;
    connect_clients(0, CLIENTS);
    turn();
    assert_int_equal(served_count, 0); /* it is not open yet */
    acceptor_open(acceptor);
    turn();
    assert_int_equal(served_count, PER_TURN);
    turn();
    assert_int_equal(served_count, 2 * PER_TURN);
    turn();
    assert_int_equal(served_count, CLIENTS);
    turn();
    assert_int_equal(served_count, CLIENTS);
    assert_int_equal(shed(), 0);
}

static void test_each_listener_has_its_turn(void **state)
{
    (void)state;
    connect_clients(0, PER_TURN + 1);
    connect_clients(1, PER_TURN + 1);
    acceptor_open(acceptor);
    turn();
    assert_int_equal(served_count, 2 * PER_TURN);
    turn();
    assert_int_equal(served_count, 2 * PER_TURN + 2);
}

static void test_what_is_accepted_is_as_the_server_needs_it(void **state)
{
    int value;
    socklen_t size = sizeof(value);

    (void)state;
    acceptor_open(acceptor);
    connect_clients(0, 1);
    RUN_UNTIL(&test_loop, served_count == 1);
    assert_true(fcntl(served[0], F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(served[0], F_GETFD) & FD_CLOEXEC);
    assert_int_equal(getsockopt(served[0], IPPROTO_TCP, TCP_NODELAY, &value, &size), 0);
    assert_int_equal(value, 1);
    assert_int_equal(getsockopt(served[0], IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &size), 0);
    assert_int_equal(value, USER_TIMEOUT_MS);
}

static void test_at_the_end_the_queue_is_emptied(void **state)
{
    (void)state;
    acceptor_open(acceptor);
    connect_clients(0, CLIENTS - 2);
    connect_clients(1, 2);
    acceptor_close(acceptor, true);
    assert_int_equal(served_count, CLIENTS);
    acceptor_close(acceptor, true); /* calling it twice is harmless */
    turn();
    assert_int_equal(served_count, CLIENTS);
    assert_int_equal(shed(), 0);
}

/* Another process has the same socket, and accepts the rest. */
static void test_queue_that_is_not_emptied_is_left_to_others(void **state)
{
    (void)state;
    acceptor_open(acceptor);
    connect_clients(0, 3);
    acceptor_close(acceptor, false);
    turn();
    assert_int_equal(served_count, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_true(is_connected(clients[i]));
        served[served_count++] = accept4(listeners[0], NULL, NULL, SOCK_CLOEXEC);
        assert_true(served[i] >= 0);
    }
}

static void test_who_was_never_open_leaves_the_queue_alone(void **state)
{
    (void)state;
    connect_clients(0, 3);
    acceptor_close(acceptor, true);
    turn();
    assert_int_equal(served_count, 0);
    assert_true(is_connected(clients[0]));
}

/* Each is closed and counted once; then the loop has nothing to do, and sleeps. */
static void test_who_comes_when_descriptors_have_run_out_is_hung_up_on(void **state)
{
    (void)state;
    acceptor_open(acceptor);
    connect_clients(0, 3);
    use_up_descriptors();
    for (int i = 0; i < 5; i++)
        turn();
    restore_descriptors();
    assert_int_equal(served_count, 0);
    assert_int_equal(shed(), 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(is_hung_up(clients[i]));
}

static void test_it_comes_back_when_there_are_descriptors_again(void **state)
{
    (void)state;
    acceptor_open(acceptor);
    for (size_t round = 1; round <= 3; round++) { /* the spare descriptor is back */
        connect_clients(0, 2);
        use_up_descriptors();
        turn();
        restore_descriptors();
        assert_int_equal(shed(), 2 * round);
        connect_clients(0, 1);
        turn();
        assert_int_equal(served_count, round);
        assert_true(is_connected(clients[client_count - 1]));
    }
    assert_int_equal(shed(), 6);
}

/* The spare one is in use: nothing can be done until a descriptor is free again. */
static void test_without_a_spare_descriptor_it_waits_for_one(void **state)
{
    struct rlimit less;

    (void)state;
    acceptor_open(acceptor);
    connect_clients(0, 1);
    use_up_descriptors();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &less), 0);
    less.rlim_cur = 0; /* the limit cannot be raised again */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
    turn();
    assert_int_equal(served_count, 0);
    assert_int_equal(shed(), 0);
    assert_true(is_connected(clients[0]));
    restore_descriptors();
    turn();
    assert_int_equal(served_count, 1);
    connect_clients(0, 1);
    use_up_descriptors();
    turn();
    restore_descriptors();
    assert_int_equal(shed(), 1); /* it had got its spare descriptor back */
    assert_true(is_hung_up(clients[1]));
}

static void test_at_the_end_without_descriptors_the_queue_is_hung_up_on(void **state)
{
    (void)state;
    acceptor_open(acceptor);
    connect_clients(0, 3);
    use_up_descriptors();
    acceptor_close(acceptor, true);
    restore_descriptors();
    assert_int_equal(served_count, 0);
    assert_int_equal(shed(), 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(is_hung_up(clients[i]));
}

static void test_without_memory_or_descriptors_there_is_none(void **state)
{
    int lowest = dup(listeners[0]);

    (void)state;
    close(lowest);
    for (uint64_t n = 0;; n++) {
        struct acceptor *made;

        mem_fail_after(n);
        made = new_acceptor();
        mem_fail_never();
        if (made) {
            acceptor_free(made);
            assert_int_equal(n, 3);
            break;
        }
        turn();
    }
    use_up_descriptors();
    assert_null(new_acceptor());
    restore_descriptors();
    turn();
    assert_int_equal(dup(listeners[0]), lowest); /* no descriptor was leaked */
    close(lowest);
}

#define test(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(test_some_are_accepted_in_a_turn_and_all_in_the_end),
        test(test_each_listener_has_its_turn),
        test(test_what_is_accepted_is_as_the_server_needs_it),
        test(test_at_the_end_the_queue_is_emptied),
        test(test_queue_that_is_not_emptied_is_left_to_others),
        test(test_who_was_never_open_leaves_the_queue_alone),
        test(test_who_comes_when_descriptors_have_run_out_is_hung_up_on),
        test(test_it_comes_back_when_there_are_descriptors_again),
        test(test_without_a_spare_descriptor_it_waits_for_one),
        test(test_at_the_end_without_descriptors_the_queue_is_hung_up_on),
        test(test_without_memory_or_descriptors_there_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
