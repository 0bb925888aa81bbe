#include "base/buffer.h"
#include "gateway/http/websocket_handshake.h"
#include "tests/support/cmocka_all.h"

#define KEY "dGhlIHNhbXBsZSBub25jZQ=="

#define UPGRADE    "Upgrade: websocket\r\n"
#define CONNECTION "Connection: Upgrade\r\n"
#define VERSION    "Sec-WebSocket-Version: 13\r\n"
#define GOOD_KEY   "Sec-WebSocket-Key: " KEY "\r\n"

static struct http_refusal refusal;

/* Returns 0, or the status of the refusal. */
static int check_as(const char *request_line, const char *fields)
{
    struct buffer text = BUFFER_INIT;
    struct http_head head;
    int status = 0;

    buffer_append_format(&text, "%s\r\nHost: example.org\r\n%s\r\n", request_line, fields);
    if (http_head_read(buffer_slice(&text), 0, &head, &refusal) < 0) {
        status = refusal.status;
    } else {
        assert_true(head.request.is_upgrade);
        if (websocket_handshake_check(&head, &refusal) < 0)
            status = refusal.status;
    }
    buffer_done(&text);
    return status;
}

static int check(const char *fields)
{
    return check_as("GET /v1/stream HTTP/1.1", fields);
}

static void test_a_whole_request_is_accepted(void **state)
{
    static const char *const good[] = {
        UPGRADE CONNECTION VERSION GOOD_KEY,
        GOOD_KEY VERSION CONNECTION UPGRADE "Sec-WebSocket-Protocol: v1\r\n",
        "UPGRADE:WebSocket\r\nconnection:keep-alive,upgrade\r\nsec-websocket-version:13\r\n"
        "SEC-WEBSOCKET-KEY:" KEY "\r\n",
        "Upgrade: h2c, websocket\r\nConnection: \tkeep-alive ,\tUPGRADE , x\r\n" VERSION GOOD_KEY,
        "Upgrade: h2c\r\n" UPGRADE "Connection: keep-alive\r\n" CONNECTION VERSION GOOD_KEY,
        UPGRADE CONNECTION VERSION "Sec-WebSocket-Key: \t" KEY " \r\n",
        UPGRADE CONNECTION VERSION "Sec-WebSocket-Key: ////////++++++++012AZz==\r\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (check(good[i]) != 0)
            fail_msg("%s: %s", refusal.message, good[i]);
}

static void test_what_is_missing_or_wrong_is_refused(void **state)
{
    static const struct {
        const char *fields;
        int status;
    } cases[] = {
        {UPGRADE VERSION GOOD_KEY, 400},
        {UPGRADE "Connection: keep-alive\r\n" VERSION GOOD_KEY, 400},
        {UPGRADE "Connection: upgraded\r\n" VERSION GOOD_KEY, 400},
        {UPGRADE CONNECTION GOOD_KEY, 426},
        {UPGRADE CONNECTION "Sec-WebSocket-Version: 8\r\n" GOOD_KEY, 426},
        {UPGRADE CONNECTION "Sec-WebSocket-Version: 013\r\n" GOOD_KEY, 426},
        {UPGRADE CONNECTION "Sec-WebSocket-Version: 13, 8\r\n" GOOD_KEY, 426},
        {UPGRADE CONNECTION "Sec-WebSocket-Version:\r\n" GOOD_KEY, 426},
        {UPGRADE CONNECTION VERSION VERSION GOOD_KEY, 400},
        {UPGRADE CONNECTION VERSION GOOD_KEY GOOD_KEY, 400},
        {UPGRADE CONNECTION VERSION, 400},
        {UPGRADE CONNECTION VERSION "Sec-WebSocket-Key:\r\n", 400},
        {UPGRADE CONNECTION VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ\r\n", 400},
        {UPGRADE CONNECTION VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=\r\n", 400},
        {UPGRADE CONNECTION VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZXM=\r\n", 400},
        {UPGRADE CONNECTION VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZXNz\r\n", 400},
        {UPGRADE CONNECTION VERSION "Sec-WebSocket-Key: dGhl-HNhbXBsZSBub25jZQ==\r\n", 400},
        {UPGRADE CONNECTION VERSION "Sec-WebSocket-Key: dGhl HNhbXBsZSBub25jZQ==\r\n", 400},
        {UPGRADE CONNECTION VERSION "Sec-WebSocket-Key: dGhl\xc3HNhbXBsZSBub25jZQ==\r\n", 400},
        {UPGRADE CONNECTION VERSION "Sec-WebSocket-Key: " KEY KEY "\r\n", 400},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (check(cases[i].fields) != cases[i].status)
            fail_msg("not refused with %d: %s", cases[i].status, cases[i].fields);
}

static void test_only_get_becomes_a_websocket(void **state)
{
    (void)state;
    assert_int_equal(check_as("HEAD / HTTP/1.1", UPGRADE CONNECTION VERSION GOOD_KEY), 405);
    assert_string_equal(refusal.allow, "GET");
}

/* The example of RFC 6455, section 1.3. */
static void test_the_key_is_answered(void **state)
{
    char accept[WEBSOCKET_ACCEPT_SIZE + 1];

    (void)state;
    assert_int_equal(websocket_handshake_accept(SL_SLICE(KEY), accept), 0);
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_whole_request_is_accepted),
        cmocka_unit_test(test_what_is_missing_or_wrong_is_refused),
        cmocka_unit_test(test_only_get_becomes_a_websocket),
        cmocka_unit_test(test_the_key_is_answered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
