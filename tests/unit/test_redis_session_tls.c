/* A session of the event loop over TLS, with a real Redis: many commands at once in both
 * directions, and every reason for which a session cannot be opened. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/redis/redis_session.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/test_loop.h"
#include "tests/support/peer.h"
#include "tests/support/tls_redis.h"

enum { LONG_MS = 60000, SHORT_MS = 200, UNSENT_MAX_BYTES = 64 * 1024 * 1024 };

static struct tls_redis redis;
static struct test_loop test_loop;
static struct redis_session *session;
static struct sl_redis_address address;

static struct {
    unsigned ready, lost, replies;
    char reason[FAILURE_TEXT_SIZE];
    size_t bytes;
} told;

static int start_server(void **state)
{
    (void)state;
    tls_redis_init(&redis, "DNS:localhost");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    tls_redis_done(&redis);
    return 0;
}

static int begin(void **state)
{
    (void)state;
    memset(&told, 0, sizeof(told));
    address = (struct sl_redis_address){.endpoint.host = "localhost", .is_tls = true};
    address.endpoint.port = (uint16_t)atoi(redis.port);
    snprintf(address.tls.ca, sizeof(address.tls.ca), "%s", tls_redis_file(&redis, "ca.pem"));
    test_loop_init(&test_loop, NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    redis_session_free(session);
    session = NULL;
    test_loop_done(&test_loop);
    return 0;
}

static void on_ready(void *context)
{
    (void)context;
    told.ready++;
}

/* Each value contains the number of the one before: all arrive, in order and whole. */
static void on_reply(void *context, const redisReply *reply)
{
    (void)context;
    if (reply->type == REDIS_REPLY_STRING && reply->len > 0) {
        assert_int_equal(reply->str[0], (char)told.replies);
        assert_int_equal(reply->str[reply->len - 1], (char)told.replies);
    }
    told.bytes += reply->len;
    told.replies++;
}

static void on_lost(void *context, const char *reason)
{
    (void)context;
    told.lost++;
    snprintf(told.reason, sizeof(told.reason), "%s", reason);
}

static void open_session(uint32_t connect_ms)
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
            .timeout_ms = LONG_MS,
            .max_unsent_bytes = UNSENT_MAX_BYTES,
        },
        &callbacks, &told);
    assert_non_null(session);
    redis_session_open(session);
}

static void expect_lost(uint32_t connect_ms, const char *reason)
{
    open_session(connect_ms);
    RUN_UNTIL(&test_loop, told.lost == 1);
    assert_int_equal(told.ready, 0);
    if (!strstr(told.reason, reason))
        fail_msg("said '%s', not '%s'", told.reason, reason);
}

/* ---- tests ---- */

static void test_much_goes_out_and_comes_back_whole(void **state)
{
    enum { COUNT = 40, SIZE = 1024 * 1024 };
    struct sl_call call = {
        .argc = 2, .argv = (const char *[]){"ECHO", malloc(SIZE)}, .argvlen = (size_t[]){4, SIZE}};
    char *value = (char *)call.argv[1];

    (void)state;
    open_session(LONG_MS);
    RUN_UNTIL(&test_loop, told.ready == 1);
    redis_session_settle(session, 0);
    for (int i = 0; i < COUNT; i++) {
        call.argvlen[1] = (size_t)(SIZE - i * 1000);
        memset(value, i, SIZE);
        assert_int_equal(redis_session_send_call(session, &call), 0);
    }
    RUN_UNTIL(&test_loop, told.replies == COUNT || told.lost > 0);
    assert_int_equal(told.lost, 0);
    assert_int_equal(told.bytes, COUNT * SIZE - 1000 * COUNT * (COUNT - 1) / 2);
    free(value);
}

static void test_it_is_opened_again_and_again(void **state)
{
    (void)state;
    open_session(LONG_MS);
    for (unsigned i = 1; i <= 3; i++) {
        RUN_UNTIL(&test_loop, told.ready == i);
        redis_session_close(session);
        redis_session_open(session);
    }
    RUN_UNTIL(&test_loop, told.ready == 4);
    redis_session_settle(session, 0);
    redis_server_restart(&redis.server);
    RUN_UNTIL(&test_loop, told.lost == 1);
    assert_string_equal(told.reason, "Redis closed the connection");
}

static void test_another_name_is_refused(void **state)
{
    (void)state;
    strcpy(address.endpoint.host, "127.0.0.1");
    expect_lost(LONG_MS, "the certificate of Redis is not for 127.0.0.1");
}

static void test_somebody_unknown_is_refused(void **state)
{
    (void)state;
    address.tls.ca[0] = '\0';
    expect_lost(LONG_MS, "the certificate of Redis is not trusted: ");
}

static void test_file_that_is_gone_is_named(void **state)
{
    (void)state;
    strcpy(address.tls.ca, "/nonexistent");
    expect_lost(LONG_MS, "cannot read the ssl-ca '/nonexistent': No such file or directory");
}

static void test_certificate_of_ours_is_asked_for(void **state)
{
    redisContext *admin = redis_server_connect(&redis.server);

    (void)state;
    redis_server_run(admin, "CONFIG SET tls-auth-clients yes");
    expect_lost(LONG_MS, "Redis wants a certificate of ours (ssl-cert and ssl-key in the URL)");
    redis_server_run(admin, "CONFIG SET tls-auth-clients no");
    redisFree(admin);
}

static void test_redis_that_wants_tls_is_recognized_without(void **state)
{
    (void)state;
    address.is_tls = false;
    expect_lost(LONG_MS, "the URL must begin with rediss, not redis");
}

static void test_peer_that_says_nothing_is_left_in_time(void **state)
{
    struct sockaddr_in where;
    int listener = peer_listen(&where);

    (void)state;
    strcpy(address.endpoint.host, "127.0.0.1");
    address.endpoint.port = ntohs(where.sin_port);
    expect_lost(SHORT_MS,
                "Redis said nothing where TLS was to be agreed on: the URL of one without "
                "TLS begins with redis, not rediss");
    close(listener);
}

static void test_peer_that_hangs_up_or_talks_otherwise_is_left(void **state)
{
    static const struct {
        const char *says, *reason;
    } plays[] = {
        {NULL, "Redis closed the connection during the TLS handshake"},
        {"-ERR max number of clients reached\r\n", "Redis answers without TLS"},
        {"\x15\x03\x03\0\2\2\x28", "Redis wants a certificate of ours"},
        {"\x16\x03\x03\xff\xff", "TLS to Redis failed: "},
    };
    static const size_t sizes[] = {0, 36, 7, 5};
    struct sockaddr_in where;
    int listener = peer_listen(&where), peer;

    (void)state;
    strcpy(address.endpoint.host, "127.0.0.1");
    address.endpoint.port = ntohs(where.sin_port);
    for (size_t i = 0; i < 4; i++) {
        told.lost = 0;
        open_session(LONG_MS);
        peer = -1;
        RUN_UNTIL(&test_loop, (peer = accept(listener, NULL, NULL)) >= 0);
        if (plays[i].says)
            assert_int_equal(send(peer, plays[i].says, sizes[i], MSG_NOSIGNAL), sizes[i]);
        shutdown(peer, SHUT_WR);
        RUN_UNTIL(&test_loop, told.lost == 1);
        if (!strstr(told.reason, plays[i].reason))
            fail_msg("said '%s', not '%s'", told.reason, plays[i].reason);
        close(peer);
        redis_session_free(session);
    }
    session = NULL;
    close(listener);
}

int main(void)
{
#define SESSION_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)
    const struct CMUnitTest tests[] = {
        SESSION_TEST(test_much_goes_out_and_comes_back_whole),
        SESSION_TEST(test_it_is_opened_again_and_again),
        SESSION_TEST(test_another_name_is_refused),
        SESSION_TEST(test_somebody_unknown_is_refused),
        SESSION_TEST(test_file_that_is_gone_is_named),
        SESSION_TEST(test_certificate_of_ours_is_asked_for),
        SESSION_TEST(test_redis_that_wants_tls_is_recognized_without),
        SESSION_TEST(test_peer_that_says_nothing_is_left_in_time),
        SESSION_TEST(test_peer_that_hangs_up_or_talks_otherwise_is_left),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
