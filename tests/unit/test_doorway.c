#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "gateway/http/doorway.h"
#include "tests/support/cmocka_all.h"

enum { MAX_HEAD = 1024, MAX_BODY = 100, TIMEOUT_MS = 60000 };

#define REQUEST       "GET /a?b;c HTTP/1.1\r\nHost: x\r\n\r\n"
#define ADMITTED      "GET /a?b%3Bc HTTP/1.1\r\nHost: x\r\n\r\n"
#define POST          "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"
#define POST_ADMITTED "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"

static uv_loop_t loop;
static struct metrics_board *board;
static struct metrics *metrics;
static struct doorway_settings settings;
static int listener;
static struct doorway *doorway;
static struct sockaddr_in address;

/* What was admitted last. */
static unsigned admissions;
static int admitted_fd;
static bool head_was_read;
static struct buffer admitted_head, admitted_body;

static void on_admit(void *owner, int fd, struct sl_slice head, struct buffer *body)
{
    assert_ptr_equal(owner, &admissions);
    admissions++;
    if (admitted_fd >= 0)
        close(admitted_fd);
    admitted_fd = fd;
    head_was_read = head.data != NULL;
    buffer_clear(&admitted_head);
    buffer_append_slice(&admitted_head, head);
    buffer_done(&admitted_body);
    if (body) {
        admitted_body = *body;
        *body = BUFFER_INIT;
    }
}

static int listen_somewhere(void)
{
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    address = (struct sockaddr_in){.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(listen(fd, 100), 0);
    return fd;
}

static int begin(void **state)
{
    (void)state;
    uv_loop_init(&loop);
    board = metrics_board_new(1);
    metrics = metrics_slot(board, 0);
    admissions = 0;
    admitted_fd = -1;
    admitted_head = admitted_body = BUFFER_INIT;
    listener = listen_somewhere();
    settings = (struct doorway_settings){.loop = &loop,
                                         .listeners = &listener,
                                         .listener_count = 1,
                                         .max_head_bytes = MAX_HEAD,
                                         .max_body_bytes = MAX_BODY,
                                         .timeout_ms = TIMEOUT_MS,
                                         .max_pending = 10,
                                         .metrics = metrics,
                                         .admit = on_admit,
                                         .owner = &admissions};
    doorway = doorway_new(&settings);
    if (!doorway)
        return -1;
    doorway_open(doorway);
    return 0;
}

static int end(void **state)
{
    (void)state;
    doorway_free(doorway);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    close(listener);
    if (admitted_fd >= 0)
        close(admitted_fd);
    buffer_done(&admitted_head);
    buffer_done(&admitted_body);
    metrics_board_free(board);
    return 0;
}

/* Begins anew; the caller has changed `settings`. */
static void begin_again(void)
{
    doorway_free(doorway);
    uv_run(&loop, UV_RUN_NOWAIT);
    doorway = doorway_new(&settings);
    assert_non_null(doorway);
    doorway_open(doorway);
}

static int enter(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Runs the loop until the doorway closes the connection, or its sending half, and returns what was
 * received. Takes no memory. */
static const char *read_to_the_end(int fd)
{
    static char answer[4096];
    size_t size = 0;

    for (;;) {
        ssize_t more;

        uv_run(&loop, UV_RUN_NOWAIT);
        more = recv(fd, answer + size, sizeof(answer) - 1 - size, MSG_DONTWAIT);
        if (more > 0) {
            size += (size_t)more;
        } else if (more == 0 || errno == ECONNRESET) {
            answer[size] = '\0';
            return answer;
        } else {
            assert_int_equal(errno, EAGAIN);
        }
    }
}

static void expect_answer(int fd, const char *expected)
{
    assert_string_equal(read_to_the_end(fd), expected);
}

static void expect_refusal(int fd, const char *status, const char *error)
{
    char expected[1024];

    snprintf(expected, sizeof(expected),
             "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
             "Cache-Control: no-store\r\nConnection: close\r\n\r\n{\"error\":%s}\n",
             status, strlen(error) + 11, error);
    expect_answer(fd, expected);
}

static void await_admission(void)
{
    unsigned before = admissions;

    while (admissions == before)
        uv_run(&loop, UV_RUN_ONCE);
}

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};

    return poll(&polled, 1, timeout_ms) == 1;
}

static void expect_in_socket(const char *text)
{
    char room[1000];
    ssize_t size = recv(admitted_fd, room, sizeof(room), MSG_DONTWAIT);

    if (!text[0]) {
        assert_int_equal(size, -1);
        assert_int_equal(errno, EAGAIN);
        return;
    }
    assert_int_equal(size, strlen(text));
    assert_memory_equal(room, text, strlen(text));
}

/* Waits for visitors to come to this number: they come and go in turns of the loop. */
static void await_pending(uint64_t count)
{
    while (metric_get(metrics, METRIC_HANDSHAKES_PENDING) != count)
        uv_run(&loop, UV_RUN_ONCE);
}

static void test_a_head_that_is_there_is_put_right_and_admitted(void **state)
{
    int fd = enter();

    (void)state;
    say(fd, REQUEST "GET /next");
    await_admission();
    assert_true(head_was_read);
    assert_string_equal(buffer_str(&admitted_head), ADMITTED);
    expect_in_socket("GET /next");
    assert_int_equal(metric_get(metrics, METRIC_HANDSHAKES_PENDING), 0);
    close(fd);
}

static void test_a_head_may_come_byte_by_byte(void **state)
{
    int fd = enter();

    (void)state;
    await_pending(1);
    for (size_t i = 0; i < sizeof(REQUEST) - 1; i++) {
        assert_int_equal(admissions, 0);
        assert_int_equal(send(fd, REQUEST + i, 1, 0), 1);
        uv_run(&loop, UV_RUN_ONCE);
    }
    assert_int_equal(admissions, 1);
    assert_string_equal(buffer_str(&admitted_head), ADMITTED);
    expect_in_socket("");
    await_pending(0);
    say(fd, "x"); /* the next owner is woken by any byte */
    assert_true(is_readable(admitted_fd, 60000));
    expect_in_socket("x");
    close(fd);
}

/* Half a head stays in the socket, but must not keep the loop awake. */
static void test_a_visitor_who_pauses_costs_nothing(void **state)
{
    int fd = enter();

    (void)state;
    say(fd, "GET / HT");
    await_pending(1);
    for (int i = 0; i < 10; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    assert_true(uv_backend_timeout(&loop) > 0);
    assert_false(is_readable(uv_backend_fd(&loop), 0));
    close(fd);
    await_pending(0);
}

static void expect_body(const char *body)
{
    assert_string_equal(buffer_str(&admitted_head), POST_ADMITTED);
    assert_string_equal(buffer_str(&admitted_body), body);
}

static void test_a_body_is_read_and_not_a_byte_more(void **state)
{
    int fd = enter();

    (void)state;
    say(fd, POST "\r\nabcdGET /next");
    await_admission();
    expect_body("abcd");
    expect_in_socket("GET /next");
    assert_int_equal(metric_get(metrics, METRIC_HANDSHAKES_PENDING), 0);
    close(fd);
}

static void test_a_body_may_come_byte_by_byte(void **state)
{
    static const char request[] = POST "\r\nabcd";
    int fd = enter();

    (void)state;
    await_pending(1);
    for (size_t i = 0; i < sizeof(request) - 1; i++) {
        assert_int_equal(admissions, 0);
        assert_int_equal(send(fd, request + i, 1, 0), 1);
        uv_run(&loop, UV_RUN_ONCE);
    }
    assert_int_equal(admissions, 1);
    expect_body("abcd");
    await_pending(0);
    close(fd);
}

static void test_half_a_body_is_not_admitted(void **state)
{
    int fd = enter();

    (void)state;
    say(fd, POST "\r\nab");
    await_pending(1);
    shutdown(fd, SHUT_WR);
    expect_answer(fd, "");
    await_pending(0);
    close(fd);

    settings.timeout_ms = 20;
    begin_again();
    fd = enter();
    say(fd, POST "\r\nab");
    expect_refusal(fd, "408 Request Timeout",
                   "{\"code\":\"request_timeout\","
                   "\"message\":\"the request took too long to arrive\"}");
    close(fd);
    assert_int_equal(admissions, 0);
}

static void test_who_expects_to_be_told_to_continue_is(void **state)
{
    char room[100];
    int fd = enter();

    (void)state;
    say(fd, POST "Expect: 100-continue\r\n\r\n");
    await_pending(1);
    assert_int_equal(recv(fd, room, sizeof(room), 0), 25);
    assert_memory_equal(room, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    say(fd, "abcd");
    await_admission();
    expect_body("abcd");
    close(fd);

    fd = enter();
    say(fd, POST "Expect: 100-continue\r\n\r\nabcd"); /* and did not wait */
    await_admission();
    assert_int_equal(recv(fd, room, sizeof(room), MSG_DONTWAIT), -1);
    close(fd);
}

static void test_a_refused_head_is_answered_and_what_follows_is_thrown_away(void **state)
{
    int fd = enter();

    (void)state;
    say(fd, "GET a HTTP/1.1\r\n\r\nand more");
    expect_refusal(fd, "400 Bad Request",
                   "{\"code\":\"bad_request\","
                   "\"message\":\"the request target must begin with /\"}");
    assert_int_equal(metric_get(metrics, METRIC_REFUSED_AT_DOOR), 1);
    assert_int_equal(metric_get(metrics, METRIC_HANDSHAKES_PENDING), 0);
    say(fd, "and more");
    uv_run(&loop, UV_RUN_NOWAIT);
    say(fd, "and more"); /* still not reset */
    close(fd);
    assert_int_equal(admissions, 0);
}

static void test_a_head_in_pieces_is_refused_as_soon_as_it_is_whole(void **state)
{
    int fd = enter();

    (void)state;
    say(fd, "BREW / HTTP/1.1\r\n");
    await_pending(1);
    say(fd, "\r\n");
    expect_refusal(fd, "501 Not Implemented",
                   "{\"code\":\"not_implemented\",\"message\":\"unknown method\"}");
    assert_int_equal(metric_get(metrics, METRIC_HANDSHAKES_PENDING), 0);
    close(fd);
}

static void test_a_head_has_a_limit(void **state)
{
    char request[2 * MAX_HEAD + 1];

    (void)state;
    for (size_t size = MAX_HEAD; size <= MAX_HEAD + 2; size++) {
        int fd = enter();

        snprintf(request, sizeof(request), "GET / HTTP/1.1\r\nHost: x\r\nX: ");
        memset(request + strlen(request), 'x', sizeof(request) - strlen(request));
        strcpy(request + size - 4, size < MAX_HEAD + 2 ? "\r\n\r\n" : "no end");
        say(fd, request);
        if (size == MAX_HEAD)
            await_admission();
        else
            expect_refusal(fd, "431 Request Header Fields Too Large",
                           "{\"code\":\"headers_too_large\",\"message\":"
                           "\"the request line and headers may have 1024 bytes\"}");
        close(fd);
    }
    assert_int_equal(admissions, 1);
}

static void test_who_takes_too_long_is_told_and_who_says_nothing_is_not(void **state)
{
    int slow, silent;

    (void)state;
    settings.timeout_ms = 20;
    begin_again();
    slow = enter();
    silent = enter();
    say(slow, "GET / HTTP/1.1\r\n");
    expect_refusal(slow, "408 Request Timeout",
                   "{\"code\":\"request_timeout\","
                   "\"message\":\"the request took too long to arrive\"}");
    expect_answer(silent, "");
    close(slow);
    close(silent);
    await_pending(0);
}

static void test_visitors_who_go_are_forgotten(void **state)
{
    int half_closed = enter(), gone = enter(), silent = enter(), reset = enter();
    struct linger at_once = {.l_onoff = 1};

    (void)state;
    say(half_closed, "GET / HT");
    say(gone, "GET / HT");
    await_pending(4);
    shutdown(half_closed, SHUT_WR);
    close(gone);
    close(silent);
    setsockopt(reset, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(reset);
    await_pending(0);
    expect_answer(half_closed, "");
    close(half_closed);
}

static void test_who_closes_its_sending_half_after_a_whole_head_is_admitted(void **state)
{
    int fd = enter();

    (void)state;
    say(fd, "GET /a?b;c HTTP/1.1\r\n");
    await_pending(1);
    say(fd, "Host: x\r\n\r\n");
    shutdown(fd, SHUT_WR);
    await_admission();
    assert_string_equal(buffer_str(&admitted_head), ADMITTED);
    close(fd);
}

static void test_only_so_many_may_be_waited_for(void **state)
{
    int fds[3];

    (void)state;
    settings.max_pending = 2;
    begin_again();
    fds[0] = enter();
    fds[1] = enter();
    await_pending(2);
    fds[2] = enter();
    expect_answer(fds[2], "");
    assert_int_equal(metric_get(metrics, METRIC_HANDSHAKES_DROPPED), 1);
    close(fds[2]);
    fds[2] = enter();
    say(fds[2], REQUEST); /* has it ready: does not count */
    await_admission();
    for (size_t i = 0; i < 3; i++)
        close(fds[i]);
}

/* Gives the connection admitted last back, as after an answer. */
static void give_back(void)
{
    int fd = admitted_fd;

    admitted_fd = -1;
    doorway_welcome_back(doorway, fd);
}

static void test_who_has_been_answered_may_ask_again(void **state)
{
    int fd = enter();

    (void)state;
    say(fd, REQUEST "GET /next HTTP/1.1\r\nHost: y\r\n\r\n" POST "\r\nabcd");
    await_admission();
    assert_string_equal(buffer_str(&admitted_head), ADMITTED);
    give_back();
    await_admission();
    assert_string_equal(buffer_str(&admitted_head), "GET /next HTTP/1.1\r\nHost: y\r\n\r\n");
    give_back();
    await_admission();
    expect_body("abcd");
    give_back();
    assert_int_equal(metric_get(metrics, METRIC_HANDSHAKES_PENDING), 1);
    close(fd);
    await_pending(0);
    assert_int_equal(admissions, 3);
}

static void test_who_would_ask_again_waits_like_all_others(void **state)
{
    int first, second;

    (void)state;
    settings.max_pending = 1;
    begin_again();
    first = enter();
    say(first, REQUEST);
    await_admission();
    second = enter();
    await_pending(1);
    give_back();
    expect_answer(first, "");
    assert_int_equal(metric_get(metrics, METRIC_HANDSHAKES_DROPPED), 1);
    close(first);
    close(second);

    settings.timeout_ms = 20;
    begin_again();
    first = enter();
    say(first, REQUEST);
    await_admission();
    give_back();
    expect_answer(first, ""); /* when its time is up */
    close(first);
}

static void test_over_tls_nothing_is_read(void **state)
{
    int fd;

    (void)state;
    settings.is_tls = true;
    begin_again();
    fd = enter();
    say(fd, "\x16\x03\x01");
    await_admission();
    assert_false(head_was_read);
    expect_in_socket("\x16\x03\x01");
    close(fd);
}

static void test_when_stopped_only_those_inside_are_admitted(void **state)
{
    int inside = enter(), outside;

    (void)state;
    await_pending(1);
    doorway_stop(doorway, false);
    outside = enter();
    say(outside, REQUEST);
    say(inside, "GET / HTTP/1.1\r\nHost: inside\r\n\r\n");
    await_admission();
    for (int i = 0; i < 10; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(admissions, 1);
    assert_non_null(strstr(buffer_str(&admitted_head), "inside"));
    close(inside);
    close(outside);
}

static void test_those_who_knocked_are_admitted_before_it_stops(void **state)
{
    int first, second;

    (void)state;
    first = enter();
    say(first, REQUEST);
    second = enter();
    say(second, REQUEST);
    doorway_stop(doorway, true);
    assert_int_equal(admissions, 2);
    close(first);
    close(second);
}

static void test_one_that_was_never_open_leaves_the_queue_alone(void **state)
{
    int outside;

    (void)state;
    doorway_free(doorway);
    uv_run(&loop, UV_RUN_NOWAIT);
    doorway = doorway_new(&settings);
    assert_non_null(doorway);
    outside = enter();
    say(outside, REQUEST);
    for (int i = 0; i < 10; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    doorway_stop(doorway, true);
    assert_int_equal(admissions, 0);
    assert_true(is_readable(listener, 20000));
    close(outside);
}

static void test_it_is_busy_with_half_a_request_and_with_a_refusal(void **state)
{
    int silent = enter(), half = enter(), wrong = enter();

    (void)state;
    assert_false(doorway_is_busy(doorway, true));
    await_pending(3);
    assert_false(doorway_is_busy(doorway, false));
    assert_true(doorway_is_busy(doorway, true));
    say(half, "GET");
    while (!doorway_is_busy(doorway, false))
        uv_run(&loop, UV_RUN_ONCE);
    say(half, REQUEST + 3);
    await_admission();
    assert_false(doorway_is_busy(doorway, false));
    say(wrong, "\r\n\r\n");
    while (!doorway_is_busy(doorway, false)) /* until the answer has been read */
        uv_run(&loop, UV_RUN_NOWAIT);
    close(wrong);
    while (doorway_is_busy(doorway, false))
        uv_run(&loop, UV_RUN_ONCE);
    close(silent);
    close(half);
}

static void test_it_can_be_freed_with_visitors_in_it(void **state)
{
    int waiting = enter(), refused = enter();

    (void)state;
    say(waiting, "GET");
    say(refused, "\r\n\r\n");
    assert_true(strlen(read_to_the_end(refused)) > 0);
    await_pending(1);
    begin_again();
    expect_answer(waiting, "");
    close(waiting);
    close(refused);
}

static void test_out_of_descriptors_visitors_are_hung_up_on(void **state)
{
    struct rlimit limit, lower;
    int fd = enter(), next;

    (void)state;
    next = dup(fd);
    assert_true(next >= 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    lower = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &lower), 0);
    expect_answer(fd, "");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(metric_get(metrics, METRIC_ACCEPT_EXHAUSTED) >= 1);
    close(fd);
    fd = enter();
    say(fd, REQUEST);
    await_admission();
    close(fd);
}

static void test_without_memory_a_visitor_is_hung_up_on(void **state)
{
    struct doorway *made = NULL;
    int fd = enter();

    (void)state;
    say(fd, "GET");
    mem_fail_after(0);
    expect_answer(fd, "");
    mem_fail_never();
    close(fd);
    fd = enter();
    say(fd, REQUEST);
    mem_fail_after(0);
    expect_answer(fd, "");
    mem_fail_never();
    close(fd);
    assert_int_equal(admissions, 0);

    doorway_free(doorway);
    uv_run(&loop, UV_RUN_NOWAIT);
    for (uint64_t n = 0; !made; n++) {
        mem_fail_after(n);
        made = doorway_new(&settings);
        mem_fail_never();
    }
    doorway = made;
}

#define DOORWAY_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DOORWAY_TEST(test_a_head_that_is_there_is_put_right_and_admitted),
        DOORWAY_TEST(test_a_head_may_come_byte_by_byte),
        DOORWAY_TEST(test_a_visitor_who_pauses_costs_nothing),
        DOORWAY_TEST(test_a_body_is_read_and_not_a_byte_more),
        DOORWAY_TEST(test_a_body_may_come_byte_by_byte),
        DOORWAY_TEST(test_half_a_body_is_not_admitted),
        DOORWAY_TEST(test_who_expects_to_be_told_to_continue_is),
        DOORWAY_TEST(test_a_refused_head_is_answered_and_what_follows_is_thrown_away),
        DOORWAY_TEST(test_a_head_in_pieces_is_refused_as_soon_as_it_is_whole),
        DOORWAY_TEST(test_a_head_has_a_limit),
        DOORWAY_TEST(test_who_takes_too_long_is_told_and_who_says_nothing_is_not),
        DOORWAY_TEST(test_visitors_who_go_are_forgotten),
        DOORWAY_TEST(test_who_closes_its_sending_half_after_a_whole_head_is_admitted),
        DOORWAY_TEST(test_only_so_many_may_be_waited_for),
        DOORWAY_TEST(test_who_has_been_answered_may_ask_again),
        DOORWAY_TEST(test_who_would_ask_again_waits_like_all_others),
        DOORWAY_TEST(test_over_tls_nothing_is_read),
        DOORWAY_TEST(test_when_stopped_only_those_inside_are_admitted),
        DOORWAY_TEST(test_those_who_knocked_are_admitted_before_it_stops),
        DOORWAY_TEST(test_one_that_was_never_open_leaves_the_queue_alone),
        DOORWAY_TEST(test_it_is_busy_with_half_a_request_and_with_a_refusal),
        DOORWAY_TEST(test_it_can_be_freed_with_visitors_in_it),
        DOORWAY_TEST(test_out_of_descriptors_visitors_are_hung_up_on),
        DOORWAY_TEST(test_without_memory_a_visitor_is_hung_up_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
