#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "gateway/http/request_head.h"
#include "tests/support/cmocka_all.h"

enum { MAX_BODY = 1000 };

static struct request_head facts;
static struct http_refusal refusal;
static struct buffer rewritten;

static int free_head(void **state)
{
    (void)state;
    buffer_done(&rewritten);
    return 0;
}

/* Rewrites a copy that ends where the head ends, so that reading behind it is caught. */
static int rewrite(const char *head, size_t size)
{
    char *copy = mem_copy(head, size);
    int r;

    assert_int_equal(request_head_end(sl_slice(copy, size)), size);
    buffer_clear(&rewritten);
    r = request_head_rewrite(sl_slice(copy, size), MAX_BODY, &rewritten, &facts, &refusal);
    mem_free(copy);
    return r;
}

static void expect_rewritten(const char *head, const char *expected)
{
    assert_int_equal(rewrite(head, strlen(head)), 0);
    assert_string_equal(buffer_str(&rewritten), expected);
}

static void expect_unchanged(const char *head)
{
    expect_rewritten(head, head);
}

static void expect_refused_bytes(const char *head, size_t size, int status, const char *message)
{
    assert_int_equal(rewrite(head, size), -EPROTO);
    assert_string_equal(refusal.message, message);
    assert_int_equal(refusal.status, status);
}

static void expect_refused(const char *head, int status, const char *message)
{
    expect_refused_bytes(head, strlen(head), status, message);
}

#define HOST "Host: a\r\n"
#define GET  "GET / HTTP/1.1\r\n" HOST
#define END  "\r\n"

static void test_the_head_ends_behind_the_first_empty_line(void **state)
{
    static const char request[] = GET END "body\r\n\r\n";
    size_t end = sizeof(GET END) - 1;

    (void)state;
    for (size_t size = 0; size < sizeof(request); size++) {
        char *copy = mem_copy(request, size);

        assert_int_equal(request_head_end(sl_slice(copy, size)), size < end ? 0 : end);
        mem_free(copy);
    }
}

static void test_a_sound_head_stays_as_it_is(void **state)
{
    (void)state;
    expect_unchanged(GET END);
    assert_false(facts.expects_continue);
    assert_false(facts.is_http_1_0);
    expect_unchanged("OPTIONS /v1/stream/filter?track=a%20b&x HTTP/1.1\r\n" HOST
                     "Accept: text/event-stream, */*\r\nX-Empty: \r\nCookie: a=b; c=d\r\n" END);
    expect_unchanged("DELETE /~user/.-_!$'()*+,:@ HTTP/1.1\r\n" HOST END);
    expect_unchanged("GET /caf\xc3\xa9 HTTP/1.1\r\n" HOST "X-Name: caf\xc3\xa9\tbar\r\n" END);
    expect_unchanged("GET / HTTP/1.0\r\n" END);
    assert_true(facts.is_http_1_0);
}

static void test_every_known_method_passes_and_no_other(void **state)
{
    static const char *const known[] = {"GET", "HEAD", "POST", "DELETE", "OPTIONS"};
    static const char *const unknown[] = {"CONNECT", "TRACE", "get", "GETS", "G", "PRI"};
    char head[100];

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        snprintf(head, sizeof(head), "%s / HTTP/1.1\r\n" HOST END, known[i]);
        expect_unchanged(head);
    }
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        snprintf(head, sizeof(head), "%s / HTTP/1.1\r\n" HOST END, unknown[i]);
        expect_refused(head, 501, "unknown method");
        assert_string_equal(refusal.code, "not_implemented");
    }
    expect_refused(END END, 400, "the request line has no method");
    expect_refused(" / HTTP/1.1\r\n" HOST END, 400, "the request line has no method");
    expect_refused("G\x01T / HTTP/1.1\r\n" HOST END, 400, "the request line has no method");
    expect_refused("G\xc3\xa9T / HTTP/1.1\r\n" HOST END, 400, "the request line has no method");
}

static void test_versions_we_do_not_speak_are_refused(void **state)
{
    static const char *const lines[] = {"GET /",           "GET / HTTP/1.2",   "GET / HTTP/2.0",
                                        "GET / http/1.1",  "GET / ",           "GET /  HTTP/1.1",
                                        "GET / HTTP/1.1 ", "GET /a b HTTP/1.1"};
    char head[100];

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        snprintf(head, sizeof(head), "%s\r\n" HOST END, lines[i]);
        expect_refused(head, 505, "HTTP/1.1 or HTTP/1.0 is needed");
    }
}

static void test_a_semicolon_in_the_query_becomes_data(void **state)
{
    (void)state;
    expect_rewritten("GET /a;b?c=d;e&f=;;?; HTTP/1.1\r\n" HOST "Cookie: a;b\r\n" END,
                     "GET /a;b?c=d%3Be&f=%3B%3B?%3B HTTP/1.1\r\n" HOST "Cookie: a;b\r\n" END);
}

static void test_an_empty_parameter_at_the_end_goes(void **state)
{
    static const char *const targets[][2] = {
        {"/a?", "/a"},          {"/a?&", "/a"},     {"/a?&&&", "/a"},
        {"/a?b=c&", "/a?b=c"},  {"/a?b&&", "/a?b"}, {"/a?&b=c", "/a?&b=c"},
        {"/a?b=c?", "/a?b=c?"}, {"/a??", "/a??"},   {"/a&", "/a&"}};
    char head[100], expected[100];

    (void)state;
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\n" HOST END, targets[i][0]);
        snprintf(expected, sizeof(expected), "GET %s HTTP/1.1\r\n" HOST END, targets[i][1]);
        expect_rewritten(head, expected);
    }
}

static void test_targets_that_could_be_misread_are_refused(void **state)
{
    static const char *const not_paths[] = {"", "*", "a", "http://a/", "?a"};
    static const char *const escapes[] = {"/%", "/%4", "/%4g", "/%g4", "/a?b=%", "/a?%1"};
    char head[100];

    (void)state;
    for (size_t i = 0; i < sizeof(not_paths) / sizeof(not_paths[0]); i++) {
        snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\n" HOST END, not_paths[i]);
        expect_refused(head, 400, "the request target must begin with /");
    }
    for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++) {
        snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\n" HOST END, escapes[i]);
        expect_refused(head, 400, "the request target holds a malformed percent escape");
    }
    expect_refused("GET /a%00 HTTP/1.1\r\n" HOST END, 400, "the request target holds a NUL");
    expect_refused("GET /?a=%00b HTTP/1.1\r\n" HOST END, 400, "the request target holds a NUL");
    expect_unchanged("GET /%0f%f0%2F%aF?%10 HTTP/1.1\r\n" HOST END);
    for (int c = 1; c < 0x80; c++) {
        if ((c >= ' ' && c != 0x7f && c != '#') || c == '\n')
            continue;
        snprintf(head, sizeof(head), "GET /a%cb HTTP/1.1\r\n" HOST END, c);
        expect_refused(head, 400, "the request target holds a character that must be escaped");
    }
#define WITH_NUL "GET /a\0b HTTP/1.1\r\n" HOST END
    expect_refused_bytes(WITH_NUL, sizeof(WITH_NUL) - 1, 400,
                         "the request target holds a character that must be escaped");
}

static void test_a_query_has_at_most_64_parameters(void **state)
{
    struct buffer head = BUFFER_INIT;

    (void)state;
    for (int count = 64; count <= 65; count++) {
        buffer_clear(&head);
        buffer_append_str(&head, "GET /a&b&c?p0");
        for (int i = 1; i < count; i++)
            buffer_append_format(&head, "&p%d;", i);
        buffer_append_str(&head, " HTTP/1.1\r\n" HOST END);
        if (count == 64)
            assert_int_equal(rewrite(head.data, head.size), 0);
        else
            expect_refused_bytes(head.data, head.size, 400, "the query has too many parameters");
    }
    buffer_done(&head);
}

static void test_lines_end_in_crlf(void **state)
{
    (void)state;
    expect_refused("GET / HTTP/1.1\n" HOST END, 400, "a line of the request does not end in CRLF");
    expect_refused("GET / HTTP/1.1\r\nHost: a\nX: y\r\n" END, 400,
                   "a line of the request does not end in CRLF");
    expect_refused("GET / HTTP/1.1\r\n\nHost: a\r\n" END, 400,
                   "a line of the request does not end in CRLF");
}

static void test_malformed_header_lines_are_refused(void **state)
{
    static const char *const lines[] = {"nothing",          ": value",   "two words: value",
                                        "name : value",     " folded",   "\tfolded: x",
                                        "n\xc3\xa9: value", "(name): x", "na\"me: x"};
    char head[100];

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        snprintf(head, sizeof(head), GET "%s\r\n" END, lines[i]);
        expect_refused(head, 400, "a header line is malformed");
    }
}

static void test_control_characters_in_a_value_are_refused(void **state)
{
    char head[] = GET "X-Name: a?b\r\n" END;
    char *at = strchr(head, '?');

    (void)state;
    for (int c = 0; c < 0x100; c++) {
        *at = (char)c;
        if ((c < 0x20 && c != '\t' && c != '\n') || c == 0x7f)
            expect_refused_bytes(head, sizeof(head) - 1, 400,
                                 "a header value holds a control character");
        else if (c != '\n')
            assert_int_equal(rewrite(head, sizeof(head) - 1), 0);
    }
}

static void test_space_around_a_value_is_dropped(void **state)
{
    (void)state;
    expect_rewritten(GET "A:b\r\nC: \t d e\t \r\nF:\r\nG: :\r\n" END,
                     GET "A: b\r\nC: d e\r\nF: \r\nG: :\r\n" END);
}

static void test_one_host_is_needed_but_in_http_1_0(void **state)
{
    (void)state;
    expect_refused("GET / HTTP/1.1\r\n" END, 400, "Host is missing");
    expect_refused("GET / HTTP/1.1\r\nX-Host: a\r\n" END, 400, "Host is missing");
    expect_refused(GET "hOST: a\r\n" END, 400, "Host is given twice");
    expect_refused("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n" END, 400, "Host is given twice");
}

static void test_a_header_that_decides_something_comes_once(void **state)
{
    static const char *const names[] = {"Authorization", "Content-Type", "Idempotency-Key",
                                        "Last-Event-ID", "Origin"};
    char head[200], why[100];

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(head, sizeof(head), GET "%s: a\r\n" END, names[i]);
        expect_unchanged(head);
        snprintf(head, sizeof(head), GET "%s: a\r\nX: y\r\n%s: a\r\n" END, names[i], names[i]);
        snprintf(why, sizeof(why), "%s is given twice", names[i]);
        expect_refused(head, 400, why);
        assert_string_equal(refusal.code, "repeated_header");
        assert_string_equal(refusal.param, names[i]);
    }
    expect_refused(GET "IDEMPOTENCY-KEY: a\r\nidempotency-key:\r\n" END, 400,
                   "Idempotency-Key is given twice");
    expect_unchanged(GET "Accept: a/b\r\nAccept: c/d\r\n" END);
}

static void test_a_body_has_one_length_of_digits_within_the_limit(void **state)
{
    static const char *const not_numbers[] = {"", "-1", "+1", "1 ,1", "0x1", "1e3", "1;", "a"};
    static const char *const too_large[] = {"1001", "0001001", "99999999999999999999999999"};
    char head[200];

    (void)state;
    expect_rewritten("POST / HTTP/1.1\r\n" HOST "content-length: 1000\r\n" END,
                     "POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n" END);
    assert_int_equal(facts.body_size, 1000);
    expect_rewritten("POST / HTTP/1.1\r\n" HOST "content-length: 00\r\n" END,
                     "POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n" END);
    assert_int_equal(facts.body_size, 0);
    for (size_t i = 0; i < sizeof(not_numbers) / sizeof(not_numbers[0]); i++) {
        snprintf(head, sizeof(head), "POST / HTTP/1.1\r\n" HOST "Content-Length: %s\r\n" END,
                 not_numbers[i]);
        expect_refused(head, 400, "Content-Length is not a number");
    }
    for (size_t i = 0; i < sizeof(too_large) / sizeof(too_large[0]); i++) {
        snprintf(head, sizeof(head), "POST / HTTP/1.1\r\n" HOST "CONTENT-LENGTH: %s\r\n" END,
                 too_large[i]);
        expect_refused(head, 413, "the request body may have 1000 bytes");
        assert_string_equal(refusal.code, "body_too_large");
    }
    expect_refused("POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\ncontent-length: 1\r\n" END, 400,
                   "Content-Length is given twice");
    expect_refused("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n" END, 411,
                   "a request body needs Content-Length");
    expect_refused("POST / HTTP/1.1\r\n" HOST
                   "Content-Length: 1\r\ntransfer-encoding: identity\r\n" END,
                   411, "a request body needs Content-Length");
}

static void test_put_and_patch_without_a_length_have_no_body(void **state)
{
    (void)state;
    expect_rewritten("PUT / HTTP/1.1\r\n" HOST END,
                     "PUT / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n" END);
    expect_rewritten("PATCH / HTTP/1.1\r\n" HOST END,
                     "PATCH / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n" END);
    expect_rewritten("PUT / HTTP/1.1\r\n" HOST "Content-Length: 7\r\n" END,
                     "PUT / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n" END);
    expect_unchanged("POST / HTTP/1.1\r\n" HOST END); /* which is refused later, 411 */
}

static void test_expect_is_noted_and_dropped(void **state)
{
    (void)state;
    expect_rewritten(GET "Expect: 100-Continue\r\n" END, GET END);
    assert_true(facts.expects_continue);
    expect_rewritten(GET "expect: something else\r\n" END, GET END);
    assert_false(facts.expects_continue);
    expect_rewritten("GET / HTTP/1.0\r\nExpect: 100-continue\r\n" END, "GET / HTTP/1.0\r\n" END);
    assert_false(facts.expects_continue);
}

static void test_only_an_upgrade_to_websocket_remains(void **state)
{
    (void)state;
    expect_unchanged(GET "Connection: Upgrade\r\nUpgrade: WebSocket\r\n" END);
    expect_rewritten(GET "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                         "HTTP2-Settings: AAMAAABkAAQAAP__\r\n" END,
                     GET "Connection: Upgrade, HTTP2-Settings\r\n" END);
    expect_rewritten(GET "upgrade: websocket/13\r\n" END, GET END);
    expect_rewritten(GET "Upgrade: websocket, h2c\r\n" END, GET END);
    expect_rewritten(GET "Upgrade:\r\n" END, GET END);
    expect_rewritten("GET / HTTP/1.0\r\nUpgrade: websocket\r\n" END, "GET / HTTP/1.0\r\n" END);
}

static void test_a_token_among_the_subprotocols_gets_a_header_of_its_own(void **state)
{
    (void)state;
    expect_rewritten(GET "Sec-WebSocket-Protocol: sluice.v1, bearer.a.b.c\r\n" END,
                     GET "Sec-WebSocket-Protocol: sluice.v1\r\n"
                         "x-sluice-protocol-token: a.b.c\r\n" END);
    expect_rewritten(GET "sec-websocket-protocol:bearer.a.b.c ,\tsluice.v1\r\n" END,
                     GET "Sec-WebSocket-Protocol: sluice.v1\r\n"
                         "x-sluice-protocol-token: a.b.c\r\n" END);
    expect_rewritten(GET "Sec-WebSocket-Protocol: bearer.\r\n" END,
                     GET "x-sluice-protocol-token: \r\n" END);
    expect_rewritten(GET "Sec-WebSocket-Protocol: bearer.a, bearer.b\r\n" END,
                     GET "Sec-WebSocket-Protocol: bearer.b\r\n"
                         "x-sluice-protocol-token: a\r\n" END);
    expect_unchanged(GET "Sec-WebSocket-Protocol: sluice.v1\r\n" END);
    expect_refused(GET "Sec-WebSocket-Protocol: sluice.v1\r\n"
                       "Sec-WebSocket-Protocol: bearer.a\r\n" END,
                   400, "Sec-WebSocket-Protocol is given twice");
}

static void test_foreign_subprotocols_are_dropped(void **state)
{
    (void)state;
    expect_rewritten(GET "Sec-WebSocket-Protocol: chat, sluice.v1,, Bearer.a, sluice.v2\r\n" END,
                     GET "Sec-WebSocket-Protocol: sluice.v1\r\n" END);
    expect_rewritten(GET "Sec-WebSocket-Protocol: chat\r\n" END, GET END);
    expect_rewritten(GET "Sec-WebSocket-Protocol: ,, ,\r\n" END, GET END);
    expect_rewritten(GET "Sec-WebSocket-Protocol:\r\n" END, GET END);
}

static void test_an_upgrade_to_nothing_but_foreign_subprotocols_is_refused(void **state)
{
    (void)state;
    expect_refused(GET "Upgrade: websocket\r\nSec-WebSocket-Protocol: chat, soap\r\n" END, 400,
                   "the subprotocol of this server is sluice.v1");
    expect_refused(GET "Sec-WebSocket-Protocol: bearer.a.b.c\r\nUpgrade: websocket\r\n" END, 400,
                   "the subprotocol of this server is sluice.v1");
    expect_rewritten(GET "Upgrade: websocket\r\nSec-WebSocket-Protocol: chat, sluice.v1\r\n" END,
                     GET "Upgrade: websocket\r\nSec-WebSocket-Protocol: sluice.v1\r\n" END);
    expect_rewritten(GET "Upgrade: websocket\r\nSec-WebSocket-Protocol: , ,\r\n" END,
                     GET "Upgrade: websocket\r\n" END);
}

static void test_our_own_header_is_not_taken_from_outside(void **state)
{
    (void)state;
    expect_rewritten(GET "X-Sluice-Protocol-Token: forged\r\n" END, GET END);
}

static void test_without_memory_no_head_is_passed_on(void **state)
{
    static const char head[] =
        "PUT /a?b=c;d HTTP/1.1\r\n" HOST "X-Long-Name-Of-A-Header: and a value of some length\r\n"
        "Sec-WebSocket-Protocol: sluice.v1, bearer.a.b.c\r\n" END;
    int r = -ENOMEM;

    (void)state;
    for (uint64_t n = 0; r < 0; n++) {
        buffer_done(&rewritten);
        mem_fail_after(n);
        r = request_head_rewrite(sl_slice_str(head), MAX_BODY, &rewritten, &facts, &refusal);
        mem_fail_never();
        assert_int_equal(r, r < 0 ? -ENOMEM : 0);
    }
}

#define HEAD_TEST(test) cmocka_unit_test_teardown(test, free_head)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HEAD_TEST(test_the_head_ends_behind_the_first_empty_line),
        HEAD_TEST(test_a_sound_head_stays_as_it_is),
        HEAD_TEST(test_every_known_method_passes_and_no_other),
        HEAD_TEST(test_versions_we_do_not_speak_are_refused),
        HEAD_TEST(test_a_semicolon_in_the_query_becomes_data),
        HEAD_TEST(test_an_empty_parameter_at_the_end_goes),
        HEAD_TEST(test_targets_that_could_be_misread_are_refused),
        HEAD_TEST(test_a_query_has_at_most_64_parameters),
        HEAD_TEST(test_lines_end_in_crlf),
        HEAD_TEST(test_malformed_header_lines_are_refused),
        HEAD_TEST(test_control_characters_in_a_value_are_refused),
        HEAD_TEST(test_space_around_a_value_is_dropped),
        HEAD_TEST(test_one_host_is_needed_but_in_http_1_0),
        HEAD_TEST(test_a_header_that_decides_something_comes_once),
        HEAD_TEST(test_a_body_has_one_length_of_digits_within_the_limit),
        HEAD_TEST(test_put_and_patch_without_a_length_have_no_body),
        HEAD_TEST(test_expect_is_noted_and_dropped),
        HEAD_TEST(test_only_an_upgrade_to_websocket_remains),
        HEAD_TEST(test_a_token_among_the_subprotocols_gets_a_header_of_its_own),
        HEAD_TEST(test_foreign_subprotocols_are_dropped),
        HEAD_TEST(test_an_upgrade_to_nothing_but_foreign_subprotocols_is_refused),
        HEAD_TEST(test_our_own_header_is_not_taken_from_outside),
        HEAD_TEST(test_without_memory_no_head_is_passed_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
