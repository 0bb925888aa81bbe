/* test_redis_session.c - how a session begins and ends, over TCP and without a Redis. */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "gateway/redis/redis_session.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/test_loop.h"

enum { TIMEOUT_MS = 20000, UNSENT_MAX_BYTES = 1024 * 1024 };

static struct test_loop test_loop;
static struct redis_session *session;
static struct sl_redis_address address;

static struct {
    unsigned ready, lost;
    char reason[FAILURE_TEXT_SIZE];
    struct buffer replies; /* status replies, each followed by a space */
    bool reopens, frees;
} told;

/* The other end. */
static int listener = -1, peer = -1;

/* ---- the session's owner ---- */

static void on_ready(void *context)
{
    assert_ptr_equal(context, &told);
    told.ready++;
}

static void on_reply(void *context, const redisReply *reply)
{
    assert_ptr_equal(context, &told);
    buffer_append_format(&told.replies, "%s ", reply->str ? reply->str : "-");
    if (told.frees) {
        redis_session_free(session);
        session = NULL;
    }
}

static void on_lost(void *context, const char *reason)
{
    assert_ptr_equal(context, &told);
    assert_false(redis_session_is_open(session));
    told.lost++;
    snprintf(told.reason, sizeof(told.reason), "%s", reason);
    if (told.reopens)
        redis_session_open(session);
}

static void make_session(uint32_t connect_ms, uint32_t timeout_ms)
{
    static const struct redis_session_callbacks callbacks = {
        .on_ready = on_ready,
        .on_reply = on_reply,
        .on_lost = on_lost,
    };

    session = redis_session_new(
        &(struct redis_session_settings){
            .loop = &test_loop.uv,
            .address = &address,
            .name = "test",
            .connect_ms = connect_ms,
            .timeout_ms = timeout_ms,
            .max_unsent_bytes = UNSENT_MAX_BYTES,
        },
        &callbacks, &told);
    assert_non_null(session);
}

/* ---- the other end ---- */

static void start_listening(void)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(where);

    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&where, size), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&where, &size), 0);
    address.endpoint.port = ntohs(where.sin_port);
}

static bool has_come(void)
{
    if (peer < 0)
        peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    return peer >= 0;
}

/* Waits until this many bytes have arrived. */
static bool hear(char *room, size_t size, size_t *at)
{
    ssize_t got = recv(peer, room + *at, size - *at, MSG_DONTWAIT);

    if (got > 0)
        *at += (size_t)got;
    return *at == size;
}

static void expect_heard(const char *expected)
{
    char heard[1024];
    size_t size = strlen(expected), at = 0;

    assert_true(size <= sizeof(heard));
    RUN_UNTIL(&test_loop, hear(heard, size, &at));
    assert_memory_equal(heard, expected, size);
}

static void say(const char *text)
{
    assert_int_equal(send(peer, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void hang_up(bool by_reset)
{
    struct linger linger = {.l_onoff = by_reset};

    assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
    close(peer);
    peer = -1;
}

#define NAME "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$4\r\ntest\r\n"

static void open_and_greet(void)
{
    redis_session_open(session);
    RUN_UNTIL(&test_loop, has_come());
    expect_heard(NAME);
    say("+OK\r\n");
    RUN_UNTIL(&test_loop, redis_session_is_ready(session));
}

static int begin(void **state)
{
    (void)state;
    memset(&told, 0, sizeof(told));
    address = (struct sl_redis_address){.endpoint.host = "localhost"};
    test_loop_init(&test_loop, NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    redis_session_free(session);
    session = NULL;
    if (peer >= 0)
        close(peer);
    if (listener >= 0)
        close(listener);
    peer = listener = -1;
    test_loop_done(&test_loop);
    buffer_done(&told.replies);
    return 0;
}

/* ---- tests ---- */

static void test_reset_is_noticed_as_soon_as_an_end_is(void **state)
{
    uint64_t begun_ms;

    (void)state;
    start_listening();
    make_session(TIMEOUT_MS, TIMEOUT_MS);
    for (int by_reset = 0; by_reset < 2; by_reset++) {
        open_and_greet();
        redis_session_settle(session, 0);
        begun_ms = uv_now(&test_loop.uv);
        told.lost = 0;
        hang_up(by_reset);
        RUN_UNTIL(&test_loop, told.lost == 1);
        assert_in_range(uv_now(&test_loop.uv) - begun_ms, 0, 1000);
        assert_string_equal(told.reason,
                            by_reset ? "Connection reset by peer" : "Redis closed the connection");
    }
}

static void test_reset_between_what_is_sent_is_noticed(void **state)
{
    (void)state;
    start_listening();
    make_session(TIMEOUT_MS, TIMEOUT_MS);
    open_and_greet();
    hang_up(true);
    for (int i = 0; i < 3; i++)
        redis_session_send_words(session, (const char *[]){"PING", NULL});
    RUN_UNTIL(&test_loop, told.lost == 1);
}

static void test_greeting_says_all_in_one_go_and_waits_for_all(void **state)
{
    (void)state;
    start_listening();
    address.db = 3;
    strcpy(address.login.user, "ada");
    strcpy(address.login.password, "secret");
    make_session(TIMEOUT_MS, TIMEOUT_MS);
    redis_session_open(session);
    RUN_UNTIL(&test_loop, has_come());
    expect_heard(
        "*3\r\n$4\r\nAUTH\r\n$3\r\nada\r\n$6\r\nsecret\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n" NAME);
    say("+OK\r\n+OK\r\n");
    for (int turn = 0; turn < 3; turn++)
        uv_run(&test_loop.uv, UV_RUN_NOWAIT);
    assert_false(redis_session_is_ready(session));
    say("-NOPERM no names\r\n+early\r\n"); /* a user that may not set a name works without one */
    RUN_UNTIL(&test_loop, told.replies.size > 0);
    assert_int_equal(told.ready, 1);
    assert_string_equal(buffer_str(&told.replies), "early ");
}

static void expect_refusal(const char *answer, const char *reason)
{
    start_listening();
    address.db = 3;
    make_session(TIMEOUT_MS, TIMEOUT_MS);
    redis_session_open(session);
    RUN_UNTIL(&test_loop, has_come());
    say(answer);
    RUN_UNTIL(&test_loop, told.lost == 1);
    assert_int_equal(told.ready, 0);
    assert_non_null(strstr(told.reason, reason));
}

static void test_database_that_is_refused_ends_it(void **state)
{
    (void)state;
    expect_refusal("-ERR DB index is out of range\r\n", "DB index is out of range");
}

static void test_redis_with_too_many_clients_is_no_connection(void **state)
{
    (void)state;
    expect_refusal("+OK\r\n-ERR max number of clients reached\r\n", "max number of clients");
}

static void test_server_that_is_silent_is_left_in_time(void **state)
{
    (void)state;
    start_listening();
    make_session(TIMEOUT_MS, 50);
    redis_session_open(session);
    RUN_UNTIL(&test_loop, told.lost == 1);
    assert_string_equal(told.reason, "Redis does not answer");
}

/* The time continues after HELLO, until the session is used. */
static void test_session_that_is_not_settled_is_left_in_time(void **state)
{
    (void)state;
    start_listening();
    make_session(TIMEOUT_MS, 300);
    open_and_greet();
    RUN_UNTIL(&test_loop, told.lost == 1);
    assert_string_equal(told.reason, "Redis does not answer");
}

static void test_name_that_is_none_is_told_later(void **state)
{
    (void)state;
    strcpy(address.endpoint.host, "no-such-host.invalid");
    address.endpoint.port = 1;
    make_session(TIMEOUT_MS, TIMEOUT_MS);
    redis_session_open(session);
    assert_int_equal(told.lost, 0);
    RUN_UNTIL(&test_loop, told.lost == 1);
    assert_string_not_equal(told.reason, "");
}

/* A look-up that takes longer than the time for opening is used by the next attempt. */
static void test_look_ups_that_take_long_are_not_piled_up(void **state)
{
    (void)state;
    start_listening();
    make_session(TIMEOUT_MS, TIMEOUT_MS);
    for (int i = 0; i < 100; i++) {
        redis_session_open(session);
        redis_session_close(session);
    }
    open_and_greet();
    assert_int_equal(told.ready, 1);
    assert_int_equal(told.lost, 0);
    hang_up(false);
}

static void test_it_can_be_opened_again_by_who_lost_it(void **state)
{
    (void)state;
    told.reopens = true;
    start_listening();
    make_session(TIMEOUT_MS, TIMEOUT_MS);
    open_and_greet();
    say("nonsense\r\n");
    RUN_UNTIL(&test_loop, told.lost == 1);
    told.reopens = false;
    close(peer);
    peer = -1;
    RUN_UNTIL(&test_loop, has_come());
    say("+OK\r\n");
    RUN_UNTIL(&test_loop, told.ready == 2);
}

static void test_it_can_be_freed_by_who_is_answered(void **state)
{
    (void)state;
    told.frees = true;
    start_listening();
    make_session(TIMEOUT_MS, TIMEOUT_MS);
    open_and_greet();
    say("+first\r\n+second\r\n");
    RUN_UNTIL(&test_loop, told.replies.size > 0);
    assert_string_equal(buffer_str(&told.replies), "first ");
}

/* A sender of more than Redis reads gets an error, and what is in flight stays intact. */
static void test_what_is_unsent_is_bounded(void **state)
{
    static const char prefix[] = "*2\r\n$3\r\nSET\r\n$100000\r\n";
    char *text = malloc(100001), *heard;
    size_t sent = 0, size, at = 0;
    int r;

    (void)state;
    memset(text, 'x', 100000);
    text[100000] = '\0';
    start_listening();
    make_session(TIMEOUT_MS, TIMEOUT_MS);
    open_and_greet();
    redis_session_settle(session, 0);
    while ((r = redis_session_send_words(session, (const char *[]){"SET", text, NULL})) == 0) {
        sent++;
        assert_true(sent < 1000);
    }
    assert_int_equal(r, -ENOMEM);
    size = sent * (sizeof(prefix) - 1 + 100000 + 2);
    heard = malloc(size);
    RUN_UNTIL(&test_loop, hear(heard, size, &at));
    for (size_t i = 0; i < sent; i++)
        assert_memory_equal(heard + i * (size / sent), prefix, sizeof(prefix) - 1);
    assert_int_equal(redis_session_send_words(session, (const char *[]){"PING", NULL}), 0);
    expect_heard("*1\r\n$4\r\nPING\r\n");
    assert_int_equal(told.lost, 0);
    free(heard);
    free(text);
}

static void test_pings_keep_a_quiet_session_and_end_a_silent_one(void **state)
{
    uint64_t begun_ms;

    (void)state;
    start_listening();
    make_session(TIMEOUT_MS, TIMEOUT_MS);
    open_and_greet();
    begun_ms = uv_now(&test_loop.uv);
    redis_session_settle(session, 100);
    for (int i = 0; i < 4; i++) {
        expect_heard("*1\r\n$4\r\nPING\r\n");
        say("*2\r\n$4\r\npong\r\n$0\r\n\r\n");
    }
    assert_true(uv_now(&test_loop.uv) - begun_ms >= 400);
    RUN_UNTIL(&test_loop, told.lost == 1);
    assert_string_equal(told.reason, "Redis is silent");
    assert_int_equal(told.replies.size, 0);
}

static void test_memory_may_run_out_anywhere(void **state)
{
    bool has_failed = true;

    (void)state;
    start_listening();
    make_session(TIMEOUT_MS, TIMEOUT_MS);
    for (uint64_t n = 0; has_failed; n++) {
        unsigned ready = told.ready, lost = told.lost;

        mem_fail_after(n);
        redis_session_open(session);
        while (told.ready == ready && told.lost == lost) {
            uv_run(&test_loop.uv, UV_RUN_NOWAIT);
            if (peer < 0 && has_come())
                say("+OK\r\n");
        }
        has_failed = mem_failed();
        mem_fail_never();
        assert_true(has_failed || told.ready > ready);
        redis_session_close(session);
        while (peer >= 0 || has_come()) {
            close(peer);
            peer = -1;
        }
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_reset_is_noticed_as_soon_as_an_end_is),
        TEST(test_reset_between_what_is_sent_is_noticed),
        TEST(test_greeting_says_all_in_one_go_and_waits_for_all),
        TEST(test_database_that_is_refused_ends_it),
        TEST(test_redis_with_too_many_clients_is_no_connection),
        TEST(test_server_that_is_silent_is_left_in_time),
        TEST(test_session_that_is_not_settled_is_left_in_time),
        TEST(test_name_that_is_none_is_told_later),
        TEST(test_look_ups_that_take_long_are_not_piled_up),
        TEST(test_it_can_be_opened_again_by_who_lost_it),
        TEST(test_it_can_be_freed_by_who_is_answered),
        TEST(test_what_is_unsent_is_bounded),
        TEST(test_pings_keep_a_quiet_session_and_end_a_silent_one),
        TEST(test_memory_may_run_out_anywhere),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
