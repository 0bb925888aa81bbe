#include "base/alloc.h"
#include "gateway/http/http_answer.h"
#include "tests/support/cmocka_all.h"

static void expect(const struct http_answer_form *form, const struct http_answer *answer,
                   const char *expected)
{
    struct buffer out = BUFFER_INIT;

    http_answer_print(form, answer, &out);
    assert_string_equal(buffer_str(&out), expected);
    buffer_done(&out);
}

static const struct http_answer text = {
    .status = 200, .content_type = "text/plain", .body = {"hello", 5}};

static void test_an_answer_has_its_length(void **state)
{
    (void)state;
    expect(&(struct http_answer_form){.closes = false}, &text,
           "HTTP/1.1 200 OK\r\n"
           "Content-Type: text/plain\r\n"
           "Content-Length: 5\r\n"
           "Cache-Control: no-store\r\n"
           "X-Content-Type-Options: nosniff\r\n"
           "\r\n"
           "hello");
}

static void test_an_answer_without_a_body_has_the_length_0(void **state)
{
    (void)state;
    expect(&(struct http_answer_form){.closes = false}, &(struct http_answer){.status = 404},
           "HTTP/1.1 404 Not Found\r\n"
           "Content-Length: 0\r\n"
           "Cache-Control: no-store\r\n"
           "X-Content-Type-Options: nosniff\r\n"
           "\r\n");
}

/* RFC 9110, 8.6: 204 has none, and that of a 304 would be the length of the 200. */
static void test_some_have_no_length(void **state)
{
    static const char *const lines[] = {"HTTP/1.1 204 No Content\r\n",
                                        "HTTP/1.1 304 Not Modified\r\n"};
    const int statuses[] = {204, 304};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct buffer out = BUFFER_INIT;

        http_answer_print(&(struct http_answer_form){.closes = false},
                          &(struct http_answer){.status = statuses[i]}, &out);
        assert_true(sl_slice_starts_with(buffer_slice(&out), sl_slice_str(lines[i])));
        assert_null(strstr(buffer_str(&out), "Content-Length"));
        buffer_done(&out);
    }
}

static void test_an_answer_to_head_has_the_length_and_no_body(void **state)
{
    (void)state;
    expect(&(struct http_answer_form){.is_head = true}, &text,
           "HTTP/1.1 200 OK\r\n"
           "Content-Type: text/plain\r\n"
           "Content-Length: 5\r\n"
           "Cache-Control: no-store\r\n"
           "X-Content-Type-Options: nosniff\r\n"
           "\r\n");
}

static void test_headers_come_from_the_request_and_from_the_answer(void **state)
{
    const struct http_answer answer = {
        .status = 200, .cache_control = "max-age=60", .headers = SL_SLICE("ETag: \"b\"\r\n")};

    (void)state;
    expect(&(struct http_answer_form){.is_http_1_0 = true,
                                      .closes = true,
                                      .date = SL_SLICE("Date: today\r\n"),
                                      .headers = SL_SLICE("Vary: Origin\r\n")},
           &answer,
           "HTTP/1.0 200 OK\r\n"
           "Date: today\r\n"
           "Content-Length: 0\r\n"
           "Cache-Control: max-age=60\r\n"
           "X-Content-Type-Options: nosniff\r\n"
           "Vary: Origin\r\n"
           "ETag: \"b\"\r\n"
           "Connection: close\r\n"
           "\r\n");
}

static void test_answers_are_appended(void **state)
{
    struct buffer out = BUFFER_INIT;
    size_t size;

    (void)state;
    http_answer_print(&(struct http_answer_form){.closes = false}, &text, &out);
    size = out.size;
    http_answer_print(&(struct http_answer_form){.closes = false}, &text, &out);
    assert_int_equal(out.size, 2 * size);
    assert_memory_equal(out.data, out.data + size, size);
    buffer_done(&out);
}

static void expect_headers(const struct http_refusal *refusal, const char *expected)
{
    struct buffer headers = BUFFER_INIT;

    http_refusal_append_headers(refusal, &headers);
    assert_string_equal(buffer_str(&headers), expected);
    buffer_done(&headers);
}

static void test_refusals_bring_their_headers(void **state)
{
    (void)state;
    expect_headers(&(struct http_refusal){.status = 400}, "");
    expect_headers(&(struct http_refusal){.status = 401, .www_authenticate = "Bearer"},
                   "WWW-Authenticate: Bearer\r\n");
    expect_headers(&(struct http_refusal){.status = 405, .allow = "GET, HEAD"},
                   "Allow: GET, HEAD\r\n");
    expect_headers(&(struct http_refusal){.status = 415, .accept_encoding = "identity"},
                   "Accept-Encoding: identity\r\n");
    expect_headers(&(struct http_refusal){.status = 503, .retry_after_s = 2}, "Retry-After: 2\r\n");
    expect_headers(&(struct http_refusal){.status = 426},
                   "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n");
}

static void test_out_of_memory_it_is_failed(void **state)
{
    struct buffer out = BUFFER_INIT;

    (void)state;
    mem_fail_after(0);
    http_answer_print(&(struct http_answer_form){.closes = false}, &text, &out);
    mem_fail_never();
    assert_true(out.failed);
    buffer_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_has_its_length),
        cmocka_unit_test(test_an_answer_without_a_body_has_the_length_0),
        cmocka_unit_test(test_some_have_no_length),
        cmocka_unit_test(test_an_answer_to_head_has_the_length_and_no_body),
        cmocka_unit_test(test_headers_come_from_the_request_and_from_the_answer),
        cmocka_unit_test(test_answers_are_appended),
        cmocka_unit_test(test_refusals_bring_their_headers),
        cmocka_unit_test(test_out_of_memory_it_is_failed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
