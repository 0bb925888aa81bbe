/* What a request for a stream means, or why it is refused.
 *
 * A case is a request as it is sent, except for its token: <<...>> stands for a valid token with
 * these claims, without `exp`. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/alloc.h"
#include "base/base64url.h"
#include "gateway/front/event_fields.h"
#include "gateway/front/stream_request.h"
#include "tests/support/cases.h"
#include "tests/support/cmocka_all.h"

#define NOW_MS UINT64_C(1800000000000) /* 2027-01-15T08:00:00Z */

static const char secret[] = "a secret of more than thirty-two bytes";
static uint64_t newest_ms; /* of the newest event that was received */
static struct front_settings settings = {.max_gather_ms = 1000};

static int make_policy(void **state)
{
    char path[] = "/tmp/sluice-test-secret-XXXXXX";
    struct token_policy *policy;
    int fd = mkstemp(path);
    int r;

    (void)state;
    if (fd < 0 || write(fd, secret, strlen(secret)) != (ssize_t)strlen(secret))
        return -1;
    close(fd);
    r = token_policy_new(&(struct token_policy_settings){.secret_file = path}, &policy, NULL);
    unlink(path);
    settings.policy = policy;
    return r;
}

static int free_policy(void **state)
{
    (void)state;
    token_policy_free((struct token_policy *)settings.policy);
    return 0;
}

static void append_token(struct sl_slice claims, struct buffer *text)
{
    static const char header[] = "{\"alg\":\"HS256\"}";
    struct buffer json = BUFFER_INIT, jwt = BUFFER_INIT;
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned mac_size;

    buffer_append_format(&json, "{\"exp\":1800003600%s%.*s}", claims.size > 0 ? "," : "",
                         SL_SLICE_ARG(claims));
    base64url_encode(sl_slice_str(header), &jwt);
    buffer_append_char(&jwt, '.');
    base64url_encode(buffer_slice(&json), &jwt);
    HMAC(EVP_sha256(), secret, strlen(secret), (unsigned char *)jwt.data, jwt.size, mac, &mac_size);
    buffer_append_char(&jwt, '.');
    base64url_encode(sl_slice((char *)mac, mac_size), &jwt);
    buffer_append_slice(text, buffer_slice(&jwt));
    buffer_done(&json);
    buffer_done(&jwt);
}

static void fill_in_tokens(struct sl_slice input, struct buffer *text)
{
    while (input.size > 0) {
        const char *begin = memmem(input.data, input.size, "<<", 2);
        const char *end = begin ? strstr(begin, ">>") : NULL;
        size_t size = end ? (size_t)(begin - input.data) : input.size;

        buffer_append(text, input.data, size);
        if (!end)
            return;
        append_token(sl_slice(begin + 2, (size_t)(end - begin - 2)), text);
        input = sl_slice_from(input, (size_t)(end + 2 - input.data));
    }
}

static struct sl_slice cut(struct sl_slice *rest, const char *at)
{
    const char *end = memmem(rest->data, rest->size, at, strlen(at));
    size_t size = end ? (size_t)(end - rest->data) : rest->size;
    struct sl_slice piece = sl_slice(rest->data, size);

    *rest = sl_slice_from(*rest, end ? size + strlen(at) : size);
    return piece;
}

static void read_header(struct sl_slice line, struct http_request *http)
{
    const struct {
        const char *name;
        struct sl_slice *value;
    } headers[] = {
        {"Accept", &http->accept.lines[0]},           {"Authorization", &http->authorization},
        {"Content-Type", &http->content_type},        {"Last-Event-ID", &http->last_event_id},
        {"Sec-WebSocket-Protocol", &http->protocols},
    };
    struct sl_slice name = cut(&line, ": ");

    if (sl_slice_is(name, "Upgrade")) {
        http->is_upgrade = true;
        return;
    }
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        if (sl_slice_is(name, headers[i].name)) {
            *headers[i].value = line;
            return;
        }
    }
    fail_msg("the test knows no header '%.*s'", SL_SLICE_ARG(name));
}

static struct http_request parse_http(struct sl_slice text)
{
    struct sl_slice head = cut(&text, "\n\n");
    struct sl_slice target = cut(&head, "\n");
    struct sl_slice method = cut(&target, " ");
    struct http_request http = {.path = cut(&target, "?"), .query = target};

    http.method = sl_slice_is(method, "POST") ? HTTP_POST : HTTP_GET;
    while (head.size > 0)
        read_header(cut(&head, "\n"), &http);
    if (http.method == HTTP_POST && text.size > 0)
        http.body = sl_slice(text.data, text.size - (text.data[text.size - 1] == '\n'));
    return http;
}

static int read_request(const struct http_request *http, struct stream_request *ret_request,
                        struct http_refusal *refusal, enum token_fault *ret_fault)
{
    const struct stream_times times = {NOW_MS, newest_ms, 1};
    enum stream_kind stream;

    if (!stream_path(http->path, &stream))
        fail_msg("no stream at %.*s", SL_SLICE_ARG(http->path));
    return stream_request_read(&settings, stream, http, &times, ret_request, refusal, ret_fault);
}

static void print_refusal(const struct http_refusal *refusal, enum token_fault fault,
                          struct buffer *text)
{
    buffer_append_format(text, "%d\n", refusal->status);
    if (refusal->www_authenticate)
        buffer_append_format(text, "WWW-Authenticate: %s\n", refusal->www_authenticate);
    if (fault != TOKEN_OK)
        buffer_append_format(text, "fault: %s\n", token_fault_name(fault));
    http_refusal_print(refusal, text);
}

static void print_bits(struct buffer *text, const char *title, unsigned bits,
                       const char *const *names)
{
    if (!bits)
        return;
    buffer_append_str(text, title);
    for (unsigned i = 0; names[i]; i++) {
        if (bits & 1u << i)
            buffer_append_format(text, " %s", names[i]);
    }
    buffer_append_char(text, '\n');
}

static void print_request(const struct stream_request *request, struct buffer *text)
{
    static const char *const streams[] = {"filter", "sample", "firehose", "home",
                                          "counts", "trends", "many",     "past counts"};
    static const char *const formats[] = {"websocket", "ndjson", "delimited", "sse"};
    static const char *const sinces[] = {"now", "id", "time", "unusable"};
    char cursor[SL_CURSOR_TEXT_SIZE];
    static const char *const types[] = {"post", "delete", "follow", "unfollow", "user", NULL};
    static const char *const kinds[] = {"firehose", "sample", "selective", NULL};

    buffer_append_format(text, "%s %s\n", streams[request->stream], formats[request->format]);
    if (request->token.subject[0])
        buffer_append_format(text, "subject: %s\n", request->token.subject);
    if (request->filter) {
        print_bits(text, "kinds:", sl_filter_kinds(request->filter), kinds);
        if (sl_filter_sample_ppm(request->filter) != 1000000)
            buffer_append_format(text, "sample: %" PRIu32 "\n",
                                 sl_filter_sample_ppm(request->filter));
        assert_int_equal(request->types, sl_filter_types(request->filter));
    }
    print_bits(text, "types:", request->types, types);
    if (request->since == SINCE_TIME)
        buffer_append_format(text, "since: time %" PRIu64 "\n",
                             sl_id_time_ms(request->since_cursor.id + 1));
    else if (request->since != SINCE_NOW)
        buffer_append_format(text, "since: %s %s\n", sinces[request->since],
                             sl_cursor_print(&request->since_cursor, cursor));
    if (request->counts.bucket_ms)
        buffer_append_format(text, "bucket: %" PRIu64 " %s %" PRIu32 " %" PRIu32 "\n",
                             request->counts.bucket_ms,
                             request->counts.by ? count_by_name(request->counts.by) : "-",
                             request->counts.cell_millidegrees, request->counts.refresh_ms);
    if (request->last)
        buffer_append_format(text, "last: %" PRIu32 "\n", request->last);
    if (request->until)
        buffer_append_format(text, "until: %" PRIu64 "\n", request->until);
    if (request->gather_ms >= 0)
        buffer_append_format(text, "gather_ms: %d\n", request->gather_ms);
    if (request->fields != EVENT_FIELDS_FULL) {
        buffer_append_str(text, "fields: ");
        event_fields_print(request->fields, text);
        buffer_append_char(text, '\n');
    }
    if (request->cursors)
        buffer_append_str(text, "cursors\n");
    if (request->hello)
        buffer_append_str(text, "hello\n");
    if (request->echo_protocol)
        buffer_append_str(text, "echo\n");
}

static void run_case(const struct test_case *test_case)
{
    struct buffer input = BUFFER_INIT, text = BUFFER_INIT;
    struct buffer actual = BUFFER_INIT, expected = BUFFER_INIT;
    struct stream_request request;
    struct http_refusal refusal;
    enum token_fault fault;
    struct http_request http;
    int r;

    case_read(test_case, "input", false, &input);
    fill_in_tokens(sl_slice(buffer_str(&input), input.size), &text);
    http = parse_http(buffer_slice(&text));
    r = read_request(&http, &request, &refusal, &fault);
    if (r == 0) {
        assert_int_equal(fault, TOKEN_OK);
        case_read(test_case, "request", false, &expected);
        print_request(&request, &actual);
        stream_request_done(&request);
    } else {
        assert_int_equal(r, -EPROTO);
        case_read(test_case, "error", false, &expected);
        print_refusal(&refusal, fault, &actual);
    }
    case_expect(test_case, buffer_slice(&actual), buffer_slice(&expected));
    buffer_done(&input);
    buffer_done(&text);
    buffer_done(&actual);
    buffer_done(&expected);
}

static void test_good_requests_are_understood(void **state)
{
    (void)state;
    cases_run("requests/accepted", run_case);
}

static void test_bad_requests_are_refused_with_a_reason(void **state)
{
    (void)state;
    cases_run("requests/refused", run_case);
}

/* --- what cannot be written in a file --- */

static void test_only_streams_have_the_path_of_a_stream(void **state)
{
    static const char *const bad[] = {"",
                                      "/",
                                      "/v1",
                                      "/v1/stream/",
                                      "/v1/stream/filter/",
                                      "/v1/stream/filterx",
                                      "/V1/stream/filter",
                                      "//v1/stream/filter",
                                      "/v1/stream/nothing"};
    enum stream_kind stream;

    (void)state;
    assert_true(stream_path(SL_SLICE("/v1/stream/home"), &stream));
    assert_int_equal(stream, STREAM_HOME);
    assert_true(stream_path(SL_SLICE("/v1/stream"), &stream));
    assert_int_equal(stream, STREAM_MANY);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(stream_path(sl_slice_str(bad[i]), &stream));
}

/* Parses a request of all scopes. The memory of what is sent has no byte after it. */
static int read_with_token(const char *path, struct sl_slice query, struct sl_slice body,
                           struct stream_request *ret_request, struct http_refusal *refusal)
{
    struct buffer authorization = BUFFER_INIT;
    char *query_copy = mem_copy(query.data, query.size);
    char *body_copy = mem_copy(body.data, body.size);
    struct http_request http = {
        .method = HTTP_POST,
        .path = sl_slice_str(path),
        .query = sl_slice(query_copy, query.size),
        .body = sl_slice(body_copy, body.size),
        .content_type = SL_SLICE("application/x-www-form-urlencoded"),
    };
    enum token_fault fault;
    int r;

    buffer_append_str(&authorization, "Bearer ");
    append_token(SL_SLICE("\"sub\":\"1\",\"scope\":\"stream:filter stream:sample stream:firehose "
                          "stream:home\""),
                 &authorization);
    http.authorization = buffer_slice(&authorization);
    r = read_request(&http, ret_request, refusal, &fault);
    buffer_done(&authorization);
    mem_free(query_copy);
    mem_free(body_copy);
    return r;
}

static void expect_same_filter(const char *query, const char *body,
                               const struct sl_filter_text *text)
{
    struct stream_request request;
    struct http_refusal refusal;
    struct sl_filter *filter;

    if (read_with_token("/v1/stream/filter", sl_slice_str(query), sl_slice_str(body), &request,
                        &refusal) < 0)
        fail_msg("%s %s: %s %s", query, body, refusal.param, refusal.message);
    assert_int_equal(sl_filter_new(text, &SL_FILTER_LIMITS_DEFAULT, &filter, NULL), 0);
    assert_true(sl_slice_equal(sl_filter_key(request.filter), sl_filter_key(filter)));
    sl_filter_unref(filter);
    stream_request_done(&request);
}

static void test_values_are_decoded(void **state)
{
    (void)state;
    expect_same_filter("track=caf%C3%A9+noir%2C%e9%87%8d%E5%BA%86", "",
                       &(struct sl_filter_text){.track = SL_SLICE("caf\xc3\xa9 noir,\xe9\x87\x8d"
                                                                  "\xe5\xba\x86")});
    expect_same_filter("tr%61ck=a=b", "", &(struct sl_filter_text){.track = SL_SLICE("a=b")});
    expect_same_filter(
        "&&track=1%2b1&", "language=en&",
        &(struct sl_filter_text){.track = SL_SLICE("1+1"), .language = SL_SLICE("en")});
    expect_same_filter("", "follow=1,2&locations=1%2C2,3,4&percent=5&partition=1/2&types=post",
                       &(struct sl_filter_text){.follow = SL_SLICE("1,2"),
                                                .locations = SL_SLICE("1,2,3,4"),
                                                .sample = SL_SLICE("5"),
                                                .partition = SL_SLICE("1/2"),
                                                .types = SL_SLICE("post")});
    expect_same_filter("rule=%28cat+OR+fox%29+-dog", "",
                       &(struct sl_filter_text){.rule = SL_SLICE("(cat OR fox) -dog")});
}

static void test_long_lists_come_in_a_form(void **state)
{
    struct buffer body = BUFFER_INIT;
    struct stream_request request;
    struct http_refusal refusal;

    (void)state;
    buffer_append_str(&body, "follow=");
    for (int i = 1; i <= 5000; i++)
        buffer_append_format(&body, "%%3%d%d%%2C", i % 10, i);
    assert_int_equal(
        read_with_token("/v1/stream/filter", SL_SLICE(""), buffer_slice(&body), &request, &refusal),
        0);
    stream_request_done(&request);
    buffer_append_str(&body, "5001");
    assert_int_equal(
        read_with_token("/v1/stream/filter", SL_SLICE(""), buffer_slice(&body), &request, &refusal),
        -EPROTO);
    assert_string_equal(refusal.code, "too_many_users");
    assert_int_equal(refusal.status, 413);
    buffer_done(&body);
}

static void test_every_prefix_of_a_query_is_read_or_refused(void **state)
{
    static const char query[] = "track=%E4%B8%AD+a&types=post&%6c%61nguage=en&percent=5&delimited="
                                "length&gather_ms=10&since=1h&cursors=true&fields=text,user.login";

    (void)state;
    for (size_t size = 0; size < sizeof(query); size++) {
        struct stream_request request;
        struct http_refusal refusal;

        if (read_with_token("/v1/stream/filter", sl_slice(query, size), SL_SLICE(""), &request,
                            &refusal) == 0)
            stream_request_done(&request);
        else
            assert_true(refusal.status == 400 || refusal.status == 403);
    }
}

static void test_since_may_lie_a_minute_ahead(void **state)
{
    uint64_t limit = (NOW_MS + STREAM_FUTURE_MS - UINT64_C(1767225600000)) * 4096 + 4095;
    struct stream_request request;
    struct http_refusal refusal;
    char query[64];

    (void)state;
    snprintf(query, sizeof(query), "since=%" PRIu64, limit);
    assert_int_equal(read_with_token("/v1/stream/firehose", sl_slice_str(query), SL_SLICE(""),
                                     &request, &refusal),
                     0);
    assert_true(request.since == SINCE_CURSOR && request.since_cursor.id == limit);
    stream_request_done(&request);
    snprintf(query, sizeof(query), "since=%" PRIu64, limit + 1);
    assert_int_equal(read_with_token("/v1/stream/firehose", sl_slice_str(query), SL_SLICE(""),
                                     &request, &refusal),
                     -EPROTO);
    assert_string_equal(refusal.param, "since");
    newest_ms = NOW_MS + 1; /* there is an event that was delivered */
    assert_int_equal(read_with_token("/v1/stream/firehose", sl_slice_str(query), SL_SLICE(""),
                                     &request, &refusal),
                     0);
    newest_ms = 0;
    stream_request_done(&request);
}

static void test_request_survives_each_failed_allocation(void **state)
{
    struct buffer authorization = BUFFER_INIT;
    struct http_request http = {
        .method = HTTP_GET,
        .path = SL_SLICE("/v1/stream/filter"),
        .query = SL_SLICE("track=coffee,night+train&follow=1,@ada&locations=1,2,3,4&language=en"),
    };
    struct stream_request request;
    struct http_refusal refusal;
    enum token_fault fault;
    uint64_t n;

    (void)state;
    buffer_append_str(&authorization, "Bearer ");
    append_token(SL_SLICE("\"scope\":\"stream:filter\""), &authorization);
    http.authorization = buffer_slice(&authorization);
    for (n = 0;; n++) {
        int r;

        mem_fail_after(n);
        r = read_request(&http, &request, &refusal, &fault);
        mem_fail_never();
        if (r == 0)
            break;
        assert_int_equal(r, -ENOMEM);
        assert_int_equal(fault, TOKEN_OK);
    }
    assert_true(n > 8);
    stream_request_done(&request);
    buffer_done(&authorization);
}

/* --- streams that are opened on a connection --- */

static int read_opened(const char *path, struct stream_request *ret_request,
                       struct http_refusal *refusal)
{
    const struct stream_times times = {NOW_MS, 0, 1};
    struct stream_request connection = {
        .stream = STREAM_MANY,
        .format = FORMAT_WEBSOCKET,
        .encoding = ENCODING_DEFLATE,
        .window_bits = 15,
        .token = {.subject = "42",
                  .scopes = TOKEN_SCOPE_FILTER | TOKEN_SCOPE_HOME,
                  .limits = SL_FILTER_LIMITS_DEFAULT},
    };

    return stream_request_read_opened(&settings, &connection, sl_slice_str(path), &times,
                                      ret_request, refusal);
}

static void test_what_is_opened_is_compressed_so_that_no_message_refers_to_another(void **state)
{
    static const struct {
        const char *path;
        enum stream_kind stream;
        enum stream_encoding encoding;
    } rows[] = {
        {"/v1/stream/filter?track=tea&fields=text&gather_ms=7", STREAM_FILTER, ENCODING_DEFLATE},
        {"/v1/stream/counts?bucket=10s&by=lang&track=tea", STREAM_COUNTS, ENCODING_DEFLATE},
        {"/v1/stream/home", STREAM_HOME, ENCODING_NONE},
        {"/v1/stream/home?", STREAM_HOME, ENCODING_NONE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stream_request request;
        struct http_refusal refusal;

        assert_int_equal(read_opened(rows[i].path, &request, &refusal), 0);
        assert_int_equal(request.stream, rows[i].stream);
        assert_int_equal(request.format, FORMAT_WEBSOCKET);
        assert_int_equal(request.encoding, rows[i].encoding);
        assert_int_equal(request.window_bits, 0);
        assert_string_equal(request.token.subject, "42");
        stream_request_done(&request);
    }
}

static void test_what_cannot_be_opened_is_refused(void **state)
{
    static const struct {
        const char *path, *code;
        int status;
    } rows[] = {
        {"", "no_such_stream", 404},
        {"?", "no_such_stream", 404},
        {"/v1/stream", "no_such_stream", 404},
        {"/v1/counts?bucket=1s&since=-1h", "no_such_stream", 404},
        {"/v1/stream/firehose", "insufficient_scope", 403},
        {"/v1/stream/filter?track=tea&hello=true", "unknown_parameter", 400},
        {"/v1/stream/counts?bucket=1s&by=rule", "bad_by", 400},
        {"/v1/stream/filter?track=tea&until=-1h", "bad_until", 400},
        {"/v1/stream/filter?track=a&track=b", "repeated_parameter", 400},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stream_request request;
        struct http_refusal refusal;

        assert_int_equal(read_opened(rows[i].path, &request, &refusal), -EPROTO);
        assert_string_equal(refusal.code, rows[i].code);
        assert_int_equal(refusal.status, rows[i].status);
    }
}

/* --- subscriptions by message --- */

static void expect_permitted(struct sl_filter_text text, unsigned scopes, uint32_t sample_ppm,
                             bool expected)
{
    struct token token = {.scopes = scopes, .limits = SL_FILTER_LIMITS_DEFAULT};
    struct http_refusal refusal;
    struct sl_filter *filter;

    token.limits.sample_ppm = sample_ppm;
    assert_int_equal(sl_filter_new(&text, &token.limits, &filter, NULL), 0);
    if (expected) {
        assert_int_equal(stream_filter_permitted(&token, filter, &refusal), 0);
    } else {
        assert_int_equal(stream_filter_permitted(&token, filter, &refusal), -EPROTO);
        assert_int_equal(refusal.status, 403);
        assert_string_equal(refusal.code, "not_permitted");
    }
    sl_filter_unref(filter);
}

static void test_each_kind_of_filter_needs_its_scope(void **state)
{
    const struct sl_filter_text selective = {.track = SL_SLICE("a"), .sample = SL_SLICE("50")};
    const struct sl_filter_text firehose = {.firehose = true};
    const struct sl_filter_text wide = {.firehose = true, .track = SL_SLICE("a")};
    const struct sl_filter_text deletions = {.firehose = true, .types = SL_SLICE("delete")};
    const struct sl_filter_text sample = {.sample = SL_SLICE("10")};
    const struct sl_filter_text partition = {.partition = SL_SLICE("1/1")};
    const struct {
        struct sl_filter_text text;
        unsigned scopes; /* each of them is sufficient */
    } cases[] = {
        {selective, TOKEN_SCOPE_FILTER}, {firehose, TOKEN_SCOPE_FIREHOSE},
        {wide, TOKEN_SCOPE_FIREHOSE},    {deletions, TOKEN_SCOPE_FIREHOSE | TOKEN_SCOPE_FILTER},
        {sample, TOKEN_SCOPE_SAMPLE},    {partition, TOKEN_SCOPE_SAMPLE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        expect_permitted(cases[i].text, 0, 1000000, false);
        for (unsigned scope = 1; scope <= TOKEN_SCOPE_ADMIN; scope <<= 1)
            expect_permitted(cases[i].text, scope, 1000000, cases[i].scopes & scope);
    }
}

static void test_lim_sample_bounds_what_is_not_selective(void **state)
{
    const unsigned all = ~0u;

    (void)state;
    expect_permitted((struct sl_filter_text){.sample = SL_SLICE("10")}, all, 100000, true);
    expect_permitted((struct sl_filter_text){.sample = SL_SLICE("10.0001")}, all, 100000, false);
    expect_permitted((struct sl_filter_text){.partition = SL_SLICE("1/99")}, all, 100000, false);
    expect_permitted((struct sl_filter_text){.firehose = true}, all, 100000, false);
    expect_permitted((struct sl_filter_text){.firehose = true, .sample = SL_SLICE("10")}, all,
                     100000, true);
    expect_permitted((struct sl_filter_text){.firehose = true, .types = SL_SLICE("delete")}, all, 0,
                     true);
    expect_permitted((struct sl_filter_text){.track = SL_SLICE("a")}, all, 0, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_requests_are_understood),
        cmocka_unit_test(test_bad_requests_are_refused_with_a_reason),
        cmocka_unit_test(test_only_streams_have_the_path_of_a_stream),
        cmocka_unit_test(test_values_are_decoded),
        cmocka_unit_test(test_long_lists_come_in_a_form),
        cmocka_unit_test(test_every_prefix_of_a_query_is_read_or_refused),
        cmocka_unit_test(test_since_may_lie_a_minute_ahead),
        cmocka_unit_test(test_request_survives_each_failed_allocation),
        cmocka_unit_test(test_what_is_opened_is_compressed_so_that_no_message_refers_to_another),
        cmocka_unit_test(test_what_cannot_be_opened_is_refused),
        cmocka_unit_test(test_each_kind_of_filter_needs_its_scope),
        cmocka_unit_test(test_lim_sample_bounds_what_is_not_selective),
    };

    return cmocka_run_group_tests(tests, make_policy, free_policy);
}
