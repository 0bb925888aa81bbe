#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "gateway/http/http_head.h"
#include "tests/support/cmocka_all.h"

enum { MAX_BODY = 1000 };

static char
    *copy; /* copy of the head without a byte after it, so that reading past the end is noticed */
static struct http_head head;
static struct http_refusal refusal;

static int free_head(void **state)
{
    (void)state;
    mem_free(copy);
    copy = NULL;
    return 0;
}

static int read_bytes(const char *text, size_t size)
{
    size_t end;

    mem_free(copy);
    copy = mem_copy(text, size);
    end = http_head_end(sl_slice(copy, size), 0);
    assert_true(end > 0 && end <= size);
    return http_head_read(sl_slice(copy, end), MAX_BODY, &head, &refusal);
}

static void expect_accepted(const char *text)
{
    if (read_bytes(text, strlen(text)) < 0)
        fail_msg("refused: %s: %s", refusal.message, text);
    assert_int_equal(http_head_end(sl_slice_str(text), 0), strlen(text));
}

static void expect_refused_bytes(const char *text, size_t size, int status, const char *message)
{
    if (read_bytes(text, size) != -EPROTO)
        fail_msg("accepted: %s", text);
    assert_string_equal(refusal.message, message);
    assert_int_equal(refusal.status, status);
}

static void expect_refused(const char *text, int status, const char *message)
{
    expect_refused_bytes(text, strlen(text), status, message);
}

/* NULL: absent. And checks that nothing was copied. */
static void expect_slice(struct sl_slice slice, const char *expected)
{
    if (!expected) {
        assert_null(slice.data);
        return;
    }
    assert_non_null(slice.data);
    assert_true(slice.data >= copy);
    if (!sl_slice_is(slice, expected))
        fail_msg("'%.*s' should be '%s'", SL_SLICE_ARG(slice), expected);
}

#define HOST "Host: a\r\n"
#define GET  "GET / HTTP/1.1\r\n" HOST
#define POST "POST / HTTP/1.1\r\n" HOST
#define END  "\r\n"

/* --- where it ends --- */

static void test_the_head_ends_behind_the_first_empty_line(void **state)
{
    static const char request[] = GET END "body\r\n\r\n";
    size_t end = sizeof(GET END) - 1;

    (void)state;
    for (size_t size = 0; size < sizeof(request); size++) {
        char *part = mem_copy(request, size);

        for (size_t seen = 0; seen <= size && seen < end; seen++)
            assert_int_equal(http_head_end(sl_slice(part, size), seen), size < end ? 0 : end);
        mem_free(part);
    }
    assert_int_equal(http_head_end(SL_SLICE("\r\n\r\n"), 0), 4);
    assert_int_equal(http_head_end(SL_SLICE("\r\n"), 0), 0);
    assert_int_equal(http_head_end(SL_SLICE("a\r\r\n"), 0), 0);
}

static void test_a_line_without_cr_ends_the_head(void **state)
{
    static const char *const heads[] = {"\n", "GET / HTTP/1.1\n", GET "a: b\n", GET "\n", "\r\n\n"};

    (void)state;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        char more[100];

        snprintf(more, sizeof(more), "%sHost: a\r\n\r\n", heads[i]);
        assert_int_equal(http_head_end(sl_slice_str(more), 0), strlen(heads[i]));
    }
}

/* --- the request line --- */

static void test_the_parts_of_a_sound_head(void **state)
{
    (void)state;
    expect_accepted("GET /v1/stream/filter?track=a%20b&x;y=?+ HTTP/1.1\r\n"
                    "Host: example.org:8080\r\n"
                    "Accept: text/event-stream, */*\r\n"
                    "accept-encoding:gzip\r\n"
                    "Authorization: Bearer a.b.c\r\n"
                    "Content-Type:\tapplication/json \t\r\n"
                    "IF-NONE-MATCH: \"x\"\r\n"
                    "Idempotency-Key: k-1\r\n"
                    "Last-Event-ID: 42\r\n"
                    "Origin: https://example.org\r\n"
                    "Sec-WebSocket-Protocol: sluice.v1, bearer.a.b.c\r\n"
                    "X-Empty:\r\nCookie: a=b; c=d\r\n" END);
    assert_int_equal(head.request.method, HTTP_GET);
    expect_slice(head.request.path, "/v1/stream/filter");
    expect_slice(head.request.query, "track=a%20b&x;y=?+");
    expect_slice(head.request.host, "example.org:8080");
    expect_slice(head.request.accept.lines[0], "text/event-stream, */*");
    expect_slice(head.request.accept_encoding.lines[0], "gzip");
    expect_slice(head.request.authorization, "Bearer a.b.c");
    expect_slice(head.request.content_type, "application/json");
    expect_slice(head.request.if_none_match, "\"x\"");
    expect_slice(head.request.idempotency_key, "k-1");
    expect_slice(head.request.last_event_id, "42");
    expect_slice(head.request.origin, "https://example.org");
    expect_slice(head.request.protocols, "sluice.v1, bearer.a.b.c");
    expect_slice(head.request.body, NULL);
    assert_false(head.request.is_http_1_0 || head.request.is_upgrade || head.request.wants_close);
    assert_false(head.expects_continue || head.connection_upgrades);
    assert_int_equal(head.body_size, 0);
}

static void test_a_bare_head_has_nothing_else(void **state)
{
    (void)state;
    expect_accepted(GET END);
    expect_slice(head.request.path, "/");
    expect_slice(head.request.query, NULL);
    expect_slice(head.request.accept.lines[0], NULL);
    expect_slice(head.request.authorization, NULL);
    expect_slice(head.request.origin, NULL);
    expect_slice(head.request.protocols, NULL);
    expect_slice(head.request.idempotency_key, NULL);
    expect_slice(head.websocket_key, NULL);
    expect_slice(head.request.extensions.lines[0], NULL);
}

static void test_every_known_method_is_read_and_no_other(void **state)
{
    static const struct {
        const char *name;
        enum http_method method;
    } known[] = {{"GET", HTTP_GET},    {"HEAD", HTTP_HEAD},     {"POST", HTTP_POST},
                 {"PUT", HTTP_PUT},    {"DELETE", HTTP_DELETE}, {"OPTIONS", HTTP_OPTIONS},
                 {"PATCH", HTTP_PATCH}};
    static const char *const unknown[] = {"CONNECT", "TRACE", "get", "GETS", "G", "PRI", "!#$%&'*"};
    char text[100];

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        snprintf(text, sizeof(text), "%s / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n" END,
                 known[i].name);
        expect_accepted(text);
        assert_int_equal(head.request.method, known[i].method);
    }
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        snprintf(text, sizeof(text), "%s / HTTP/1.1\r\n" HOST END, unknown[i]);
        expect_refused(text, 501, "unknown method");
        assert_string_equal(refusal.code, "not_implemented");
    }
    expect_refused(END END, 400, "the request line has no method");
    expect_refused(END GET END, 400, "the request line has no method");
    expect_refused(" / HTTP/1.1\r\n" HOST END, 400, "the request line has no method");
    expect_refused("G\x01T / HTTP/1.1\r\n" HOST END, 400, "the request line has no method");
    expect_refused("G\xc3\xa9T / HTTP/1.1\r\n" HOST END, 400, "the request line has no method");
    expect_refused("GET\t/\tHTTP/1.1\r\n" HOST END, 400, "the request line has no method");
}

static void test_versions_we_do_not_speak_are_refused(void **state)
{
    static const char *const lines[] = {"GET",
                                        "GET /",
                                        "GET / ",
                                        "GET / HTTP/2.0",
                                        "GET / HTTP/0.9",
                                        "GET / HTTP/1.2",
                                        "GET / http/1.1",
                                        "GET / HTTP/1.1 ",
                                        "GET /  HTTP/1.1",
                                        "GET /a b HTTP/1.1",
                                        "GET / HTTP/1.10",
                                        "GET / HTTP/01.1",
                                        "GET / HTTP/1",
                                        "GET / HTTPS/1.1",
                                        "GET / \rHTTP/1.1"};
    char text[100];

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        snprintf(text, sizeof(text), "%s\r\n" HOST END, lines[i]);
        expect_refused(text, 505, "HTTP/1.1 or HTTP/1.0 is needed");
        assert_string_equal(refusal.code, "http_version");
    }
}

static void test_the_query_is_what_stands_behind_the_first_question_mark(void **state)
{
    static const char *const targets[][3] = {{"/a", "/a", NULL},
                                             {"/a?", "/a", ""},
                                             {"/a?&", "/a", "&"},
                                             {"/a?b=c&", "/a", "b=c&"},
                                             {"/a??", "/a", "?"},
                                             {"/a&b?c=d?e", "/a&b", "c=d?e"},
                                             {"/?../x//", "/", "../x//"},
                                             {"/a;b?c;d", "/a;b", "c;d"},
                                             {"/~u/.-_!$'()*+,:@", "/~u/.-_!$'()*+,:@", NULL},
                                             {"/caf\xc3\xa9?\xc3\xa9", "/caf\xc3\xa9", "\xc3\xa9"}};
    char text[100];

    (void)state;
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\n" HOST END, targets[i][0]);
        expect_accepted(text);
        expect_slice(head.request.path, targets[i][1]);
        expect_slice(head.request.query, targets[i][2]);
    }
}

static void test_targets_that_could_be_misread_are_refused(void **state)
{
    static const char *const not_paths[] = {"", "*", "a", "http://a/", "?a", "a:80"};
    static const char *const escapes[] = {"/%", "/%4", "/%4g", "/%g4", "/a?b=%", "/a?%1", "/%4?1"};
    char text[100];

    (void)state;
    for (size_t i = 0; i < sizeof(not_paths) / sizeof(not_paths[0]); i++) {
        snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\n" HOST END, not_paths[i]);
        expect_refused(text, 400, "the request target must begin with /");
    }
    for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++) {
        snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\n" HOST END, escapes[i]);
        expect_refused(text, 400, "the request target has a malformed percent escape");
    }
    expect_refused("GET /?a=%00b HTTP/1.1\r\n" HOST END, 400, "the request target has a NUL");
    expect_accepted("GET /%f0%AF?%10%2f%2e HTTP/1.1\r\n" HOST END);
    for (int c = 1; c < 0x100; c++) {
        if (c == '\n' || c == '%' || c == ' ')
            continue;
        snprintf(text, sizeof(text), "GET /a%cb?%c HTTP/1.1\r\n" HOST END, c, c);
        if (c > ' ' && c != 0x7f && c != '#') {
            expect_accepted(text);
            continue;
        }
        expect_refused(text, 400, "the request target has a character that must be escaped");
        snprintf(text, sizeof(text), "GET /a?%cb HTTP/1.1\r\n" HOST END, c);
        expect_refused(text, 400, "the request target has a character that must be escaped");
    }
#define WITH_NUL "GET /a\0b HTTP/1.1\r\n" HOST END
    expect_refused_bytes(WITH_NUL, sizeof(WITH_NUL) - 1, 400,
                         "the request target has a character that must be escaped");
}

static void test_a_path_with_another_name_leads_nowhere(void **state)
{
    static const char *const others[] = {
        "//healthz",   "/a/../healthz",  "/./healthz",      "/%2e/healthz", "/a/%2e%2e/healthz",
        "/%2fhealthz", "/healthz/..%2f", "/metrics%0d.css", "/a%00",        "/healthz/."};
    char text[100];

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        snprintf(text, sizeof(text), "GET %s?a=b HTTP/1.1\r\n" HOST END, others[i]);
        expect_refused(text, 404, "there is nothing at this path");
        assert_string_equal(refusal.code, "not_found");
    }
}

/* --- lines --- */

static void test_lines_end_in_crlf(void **state)
{
    static const char *const heads[] = {
        "GET / HTTP/1.1\n" HOST END,
        "GET / HTTP/1.1\r\nHost: a\nX: y\r\n" END,
        "GET / HTTP/1.1\r\n\nHost: a\r\n" END,
        "GET / HTTP/1.1\nHost: a\n\n",
        GET "\n",
        "\n" GET END,
    };

    (void)state;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        expect_refused(heads[i], 400, "a line of the request does not end in CRLF");
}

static void test_malformed_header_lines_are_refused(void **state)
{
    static const char *const lines[] = {"nothing",
                                        ": value",
                                        ":",
                                        "two words: value",
                                        "name : value",
                                        " folded",
                                        "\tfolded: x",
                                        " folded: x",
                                        "n\xc3\xa9: value",
                                        "(name): x",
                                        "na\"me: x",
                                        "Host : b",
                                        "Content-Length : 5",
                                        "Transfer-Encoding\t: chunked",
                                        "a\rb: c",
                                        "\r"};
    char text[100];

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        snprintf(text, sizeof(text), GET "%s\r\n" END, lines[i]);
        expect_refused(text, 400, "a header line is malformed");
    }
}

static void test_names_are_tokens(void **state)
{
    char text[] = GET "X-a-Name: b\r\n" END;
    char *at = strstr(text, "a-N");

    (void)state;
    for (int c = 0; c < 0x100; c++) {
        bool is_token = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
                        (c && strchr("!#$%&'*+-.^_`|~", c));

        *at = (char)c;
        if (c == '\n' || c == ':')
            continue;
        if (c < 0x80 && is_token)
            assert_int_equal(read_bytes(text, sizeof(text) - 1), 0);
        else
            expect_refused_bytes(text, sizeof(text) - 1, 400, "a header line is malformed");
    }
}

/* At every place, because eight bytes are processed together; in known headers and in others. */
static void test_control_characters_in_a_value_are_refused(void **state)
{
    static const char *const names[] = {"X-Name", "Accept"};

    (void)state;
    for (int c = 0; c < 0x100; c++) {
        for (size_t at = 0; at < 20; at++) {
            char value[] = "a23456789.b23456789.", text[100];
            int size = snprintf(text, sizeof(text), GET "%s: %s\r\n" END, names[at % 2], value);

            if (c == '\n')
                continue;
            *(strstr(text, "a23") + at) = (char)c;
            if ((c < 0x20 && c != '\t') || c == 0x7f)
                expect_refused_bytes(text, (size_t)size, 400,
                                     "a header value has a control character");
            else
                assert_int_equal(read_bytes(text, (size_t)size), 0);
        }
    }
}

static void test_space_around_a_value_is_dropped(void **state)
{
    (void)state;
    expect_accepted(GET "Accept: \t d e\t \r\nOrigin::\r\nLast-Event-ID:1\r\nX-A: \t \r\n" END);
    expect_slice(head.request.accept.lines[0], "d e");
    expect_slice(head.request.origin, ":");
    expect_slice(head.request.last_event_id, "1");
}

static void test_an_empty_value_is_absent_except_for_a_key(void **state)
{
    (void)state;
    expect_accepted(GET "Authorization: \r\nOrigin:\r\nAccept:\t\r\nIdempotency-Key: \r\n"
                        "Sec-WebSocket-Protocol:\r\nIf-None-Match:\r\n" END);
    expect_slice(head.request.authorization, NULL);
    expect_slice(head.request.origin, NULL);
    expect_slice(head.request.accept.lines[0], NULL);
    expect_slice(head.request.if_none_match, NULL);
    expect_slice(head.request.protocols, NULL);
    expect_slice(head.request.idempotency_key, "");
    expect_refused(GET "Origin:\r\norigin: a\r\n" END, 400, "Origin is given twice");
}

/* --- headers --- */

static void test_one_host_is_needed_but_in_http_1_0(void **state)
{
    (void)state;
    expect_refused("GET / HTTP/1.1\r\n" END, 400, "Host is missing");
    expect_refused("GET / HTTP/1.1\r\nX-Host: a\r\n" END, 400, "Host is missing");
    expect_refused(GET "hOST: a\r\n" END, 400, "Host is given twice");
    expect_refused("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n" END, 400, "Host is given twice");
    expect_accepted("GET / HTTP/1.0\r\n" END);
    assert_true(head.request.is_http_1_0);
    expect_accepted("GET / HTTP/1.1\r\nHost:\r\n" END);
    expect_slice(head.request.host, NULL);
}

static void test_a_host_is_a_name_and_a_port(void **state)
{
    static const char *const good[] = {"a", "a.example:80", "[::1]:8080", "10.0.0.1", "%61_-~b"};
    static const char *const bad[] = {"a b", "a/b",   "u@a", "a\\b",        "a?b",
                                      "a#b", "\"a\"", "<a>", "caf\xc3\xa9", "a\tb"};
    char text[100];

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: %s\r\n" END, good[i]);
        expect_accepted(text);
        expect_slice(head.request.host, good[i]);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: %s\r\n" END, bad[i]);
        expect_refused(text, 400, "Host is malformed");
    }
}

static void test_a_header_that_decides_something_comes_once(void **state)
{
    static const char *const names[] = {"Authorization",
                                        "Content-Type",
                                        "Idempotency-Key",
                                        "Last-Event-ID",
                                        "Origin",
                                        "Host",
                                        "Sec-WebSocket-Protocol",
                                        "Sec-WebSocket-Key",
                                        "Sec-WebSocket-Version"};
    char text[200], why[100];

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(text, sizeof(text), "GET / HTTP/1.0\r\n%s: a\r\n" END, names[i]);
        expect_accepted(text);
        snprintf(text, sizeof(text), "GET / HTTP/1.0\r\n%s: a\r\nX: y\r\n%s: a\r\n" END, names[i],
                 names[i]);
        snprintf(why, sizeof(why), "%s is given twice", names[i]);
        expect_refused(text, 400, why);
        assert_string_equal(refusal.code, "repeated_header");
        assert_string_equal(refusal.param, names[i]);
    }
    expect_refused(GET "IDEMPOTENCY-KEY: a\r\nidempotency-key:\r\n" END, 400,
                   "Idempotency-Key is given twice");
}

static void test_names_like_those_of_known_headers_are_others(void **state)
{
    (void)state;
    expect_accepted(GET "Origin_: a\r\nrigin: a\r\nX-Origin: a\r\nOrigim: a\r\n"
                        "Content_Length: 5\r\nContent.Length: 5\r\nTransfer_Encoding: chunked\r\n"
                        "X-A-Header-Name-That-Is-Longer-Than-All-Others: a\r\n" END);
    expect_slice(head.request.origin, NULL);
    assert_int_equal(head.body_size, 0);
}

static void test_of_lists_for_files_the_first_line_counts(void **state)
{
    (void)state;
    expect_accepted(GET "If-None-Match:\r\nIf-None-Match: \"a\"\r\nIf-None-Match: \"b\"\r\n" END);
    expect_slice(head.request.if_none_match, "\"a\"");
}

static void test_a_body_has_one_length_of_digits_within_the_limit(void **state)
{
    static const char *const not_numbers[] = {"",    "-1",  "+1",  "+18", "1 ,1", "1,1",
                                              "1 1", "0x1", "1e3", "1;",  "a",    "\xb2"};
    static const char *const too_large[] = {"1001", "0001001", "18446744073709551617",
                                            "99999999999999999999999999"};
    char text[200];

    (void)state;
    expect_accepted(POST "content-length: 1000\r\n" END);
    assert_int_equal(head.body_size, 1000);
    expect_accepted(POST "content-length: 00\r\n" END);
    assert_int_equal(head.body_size, 0);
    expect_accepted("DELETE / HTTP/1.1\r\n" HOST "Content-Length:007\t\r\n" END);
    assert_int_equal(head.body_size, 7);
    for (size_t i = 0; i < sizeof(not_numbers) / sizeof(not_numbers[0]); i++) {
        snprintf(text, sizeof(text), POST "Content-Length: %s\r\n" END, not_numbers[i]);
        expect_refused(text, 400, "Content-Length is not a number");
    }
    for (size_t i = 0; i < sizeof(too_large) / sizeof(too_large[0]); i++) {
        snprintf(text, sizeof(text), POST "CONTENT-LENGTH: %s\r\n" END, too_large[i]);
        expect_refused(text, 413, "the request body may have 1000 bytes");
        assert_string_equal(refusal.code, "body_too_large");
    }
    expect_refused(POST "Content-Length: 1\r\ncontent-length: 1\r\n" END, 400,
                   "Content-Length is given twice");
}

static void test_no_body_comes_in_another_encoding(void **state)
{
    static const char *const heads[] = {
        POST "Transfer-Encoding: chunked\r\n" END,
        POST "Transfer-Encoding:\r\n" END,
        POST "Content-Length: 1\r\ntransfer-encoding: identity\r\n" END,
        POST "Transfer-Encoding: xchunked\r\nContent-Length: 1\r\n" END,
        GET "TRANSFER-ENCODING: chunked\r\n" END,
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n" END,
    };

    (void)state;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        expect_refused(heads[i], 411, "a request body needs Content-Length");
        assert_string_equal(refusal.code, "length_required");
    }
}

static void test_a_body_is_not_compressed(void **state)
{
    static const char *const encoded[] = {
        "Content-Encoding: gzip\r\n",
        "content-encoding: identity\r\nCONTENT-ENCODING: br\r\n",
        "Content-Encoding: identity, zstd\r\n",
        "Content-Encoding: identity;q=1\r\n",
    };
    static const char *const plain[] = {
        "Content-Encoding: Identity\r\n",
        "Content-Encoding:\r\n",
        "Content-Encoding: , identity ,\r\n",
    };
    char text[256];

    (void)state;
    for (size_t i = 0; i < sizeof(encoded) / sizeof(encoded[0]); i++) {
        snprintf(text, sizeof(text), POST "%sContent-Length: 1\r\n" END, encoded[i]);
        expect_refused(text, 415, "a request body must not have Content-Encoding");
        assert_string_equal(refusal.code, "bad_content_encoding");
        assert_string_equal(refusal.param, "Content-Encoding");
        assert_string_equal(refusal.accept_encoding, "identity");
        snprintf(text, sizeof(text), POST "%sContent-Length: 0\r\n" END, encoded[i]);
        expect_accepted(text);
        snprintf(text, sizeof(text), GET "%s" END, encoded[i]);
        expect_accepted(text);
    }
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        snprintf(text, sizeof(text), POST "Content-Length: 1\r\n%s" END, plain[i]);
        expect_accepted(text);
    }
}

static void test_who_must_say_how_long_the_body_is_and_who_has_none(void **state)
{
    (void)state;
    expect_accepted(POST END);
    assert_true(head.lacks_length && head.body_size == 0);
    expect_accepted(POST "Content-Length: 0\r\n" END);
    assert_false(head.lacks_length);
    expect_refused(GET "Content-Length: 1\r\n" END, 400, "a GET request has no body");
    expect_accepted(GET "Content-Length: 0\r\n" END);
    expect_accepted("PUT / HTTP/1.1\r\n" HOST END);
    assert_true(!head.lacks_length && head.body_size == 0);
    expect_accepted("PATCH / HTTP/1.1\r\n" HOST END);
    assert_int_equal(head.body_size, 0);
}

static void test_expect_is_noted_when_it_is_100_continue(void **state)
{
    (void)state;
    expect_accepted(POST "Content-Length: 1\r\nExpect: 100-Continue\r\n" END);
    assert_true(head.expects_continue);
    expect_accepted(GET "expect: something else\r\n" END);
    assert_false(head.expects_continue);
    expect_accepted("GET / HTTP/1.0\r\nExpect: 100-continue\r\n" END);
    assert_false(head.expects_continue);
}

static void test_who_wants_the_connection_closed(void **state)
{
    static const struct {
        const char *line;
        bool closes, upgrades;
    } cases[] = {
        {"Connection: close", true, false},
        {"Connection: Close", true, false},
        {"connection:keep-alive ,\tCLOSE", true, false},
        {"Connection: keep-alive\r\nConnection: close", true, false},
        {"Connection: close\r\nConnection: keep-alive", true, false},
        {"Connection: keep-alive", false, false},
        {"Connection:", false, false},
        {"Connection: closed, disclose", false, false},
        {"Connection: keep-alive, Upgrade", false, true},
        {"Connection: upgrade\r\nConnection: keep-alive", false, true},
        {"Connection: upgrades", false, false},
    };
    char text[200];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(text, sizeof(text), GET "%s\r\n" END, cases[i].line);
        expect_accepted(text);
        assert_int_equal(head.request.wants_close, cases[i].closes);
        assert_int_equal(head.connection_upgrades, cases[i].upgrades);
    }
    expect_accepted("GET / HTTP/1.0\r\nConnection: keep-alive\r\n" END);
    assert_true(head.request.wants_close);
}

static void test_only_websocket_is_upgraded_to(void **state)
{
    static const struct {
        const char *line;
        bool is_upgrade;
    } cases[] = {
        {"Upgrade: websocket", true},
        {"Upgrade: WebSocket", true},
        {"Upgrade: h2c, websocket", true},
        {"upgrade: websocket,h2c", true},
        {"Upgrade: h2c\r\nUpgrade: websocket\r\nUpgrade: foo", true},
        {"Upgrade: h2c", false},
        {"Upgrade: websocket/13", false},
        {"Upgrade: websocketx", false},
        {"Upgrade:", false},
        {"X-Upgrade: websocket", false},
    };
    char text[200];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(text, sizeof(text), GET "Connection: Upgrade\r\n%s\r\n" END, cases[i].line);
        expect_accepted(text);
        assert_int_equal(head.request.is_upgrade, cases[i].is_upgrade);
    }
    expect_accepted("GET / HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" END);
    assert_false(head.request.is_upgrade);
}

static void test_what_a_handshake_is_judged_by(void **state)
{
    (void)state;
    expect_accepted(GET "Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                        "Sec-WebSocket-Version: 13\r\n"
                        "Sec-WebSocket-Extensions: a; b=1\r\nSEC-WEBSOCKET-EXTENSIONS:\r\n"
                        "Sec-WebSocket-Extensions: c\r\nSec-WebSocket-Extensions: d, e\r\n" END);
    expect_slice(head.websocket_key, "dGhlIHNhbXBsZSBub25jZQ==");
    expect_slice(head.websocket_version, "13");
    expect_slice(head.request.extensions.lines[0], "a; b=1");
    expect_slice(head.request.extensions.lines[1], "c");
    expect_slice(head.request.extensions.lines[2], "d, e");
    expect_slice(head.request.extensions.lines[3], NULL);
}

static void test_lists_come_on_four_lines_at_most(void **state)
{
    static const char *const names[] = {"Accept", "Sec-WebSocket-Extensions"};
    struct buffer text = BUFFER_INIT;
    char line[100], why[100];
    size_t whole;

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        buffer_clear(&text);
        buffer_append_str(&text, GET);
        snprintf(line, sizeof(line), "%s: a/b\r\n%s:\r\n", names[i], names[i]);
        for (int count = 1; count <= HTTP_LIST_LINES; count++)
            buffer_append_str(&text, line);
        whole = text.size;
        buffer_append_str(&text, END);
        expect_accepted(buffer_str(&text));
        expect_slice((i ? &head.request.extensions : &head.request.accept)->lines[3], "a/b");
        text.size = whole;
        buffer_append_str(&text, line);
        buffer_append_str(&text, END);
        snprintf(why, sizeof(why), "%s is given more than 4 times", names[i]);
        expect_refused(buffer_str(&text), 400, why);
        assert_string_equal(refusal.code, "repeated_header");
        assert_string_equal(refusal.param, names[i]);
    }
    buffer_done(&text);
}

static void test_extensions_may_be_long(void **state)
{
    struct buffer text = BUFFER_INIT;

    (void)state;
    buffer_append_str(&text, GET "Sec-WebSocket-Extensions: x");
    for (int i = 0; i < 3000; i++)
        buffer_append_str(&text, ", x");
    buffer_append_str(&text, "\r\n" END);
    expect_accepted(buffer_str(&text));
    assert_int_equal(head.request.extensions.lines[0].size, 9001);
    buffer_done(&text);
}

static void test_a_handshake_has_no_body(void **state)
{
    (void)state;
    expect_refused(GET "Upgrade: websocket\r\nContent-Length: 1\r\n" END, 400,
                   "a WebSocket handshake has no body");
    expect_refused(POST "Content-Length: 1\r\nUpgrade: h2c, websocket\r\n" END, 400,
                   "a WebSocket handshake has no body");
    expect_accepted(GET "Upgrade: websocket\r\nContent-Length: 0\r\n" END);
    expect_accepted(POST "Upgrade: h2c\r\nContent-Length: 1\r\n" END);
}

static void test_a_refusal_fills_nothing(void **state)
{
    (void)state;
    expect_accepted(GET "Accept: a/b\r\n" END);
    memset(&head, 0x5a, sizeof(head));
    expect_refused(GET "Accept: a/b\r\nnothing\r\n" END, 400, "a header line is malformed");
    for (size_t i = 0; i < sizeof(head); i++)
        assert_int_equal(((unsigned char *)&head)[i], 0x5a);
}

#define HEAD_TEST(test) cmocka_unit_test_teardown(test, free_head)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HEAD_TEST(test_the_head_ends_behind_the_first_empty_line),
        HEAD_TEST(test_a_line_without_cr_ends_the_head),
        HEAD_TEST(test_the_parts_of_a_sound_head),
        HEAD_TEST(test_a_bare_head_has_nothing_else),
        HEAD_TEST(test_every_known_method_is_read_and_no_other),
        HEAD_TEST(test_versions_we_do_not_speak_are_refused),
        HEAD_TEST(test_the_query_is_what_stands_behind_the_first_question_mark),
        HEAD_TEST(test_targets_that_could_be_misread_are_refused),
        HEAD_TEST(test_a_path_with_another_name_leads_nowhere),
        HEAD_TEST(test_lines_end_in_crlf),
        HEAD_TEST(test_malformed_header_lines_are_refused),
        HEAD_TEST(test_names_are_tokens),
        HEAD_TEST(test_control_characters_in_a_value_are_refused),
        HEAD_TEST(test_space_around_a_value_is_dropped),
        HEAD_TEST(test_an_empty_value_is_absent_except_for_a_key),
        HEAD_TEST(test_one_host_is_needed_but_in_http_1_0),
        HEAD_TEST(test_a_host_is_a_name_and_a_port),
        HEAD_TEST(test_a_header_that_decides_something_comes_once),
        HEAD_TEST(test_names_like_those_of_known_headers_are_others),
        HEAD_TEST(test_of_lists_for_files_the_first_line_counts),
        HEAD_TEST(test_a_body_has_one_length_of_digits_within_the_limit),
        HEAD_TEST(test_no_body_comes_in_another_encoding),
        HEAD_TEST(test_a_body_is_not_compressed),
        HEAD_TEST(test_who_must_say_how_long_the_body_is_and_who_has_none),
        HEAD_TEST(test_expect_is_noted_when_it_is_100_continue),
        HEAD_TEST(test_who_wants_the_connection_closed),
        HEAD_TEST(test_only_websocket_is_upgraded_to),
        HEAD_TEST(test_what_a_handshake_is_judged_by),
        HEAD_TEST(test_lists_come_on_four_lines_at_most),
        HEAD_TEST(test_extensions_may_be_long),
        HEAD_TEST(test_a_handshake_has_no_body),
        HEAD_TEST(test_a_refusal_fills_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
