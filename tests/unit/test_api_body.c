#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gateway/api/body.h"
#include "tests/support/cmocka_all.h"

static struct http_refusal refusal;

/* Returns the body as an object, to be freed, or NULL: refused. */
static json_t *read_bytes(const char *text, size_t size)
{
    const struct http_request http = {
        .method = HTTP_POST,
        .content_type = SL_SLICE("application/json"),
        .body = sl_slice(text, size),
    };
    json_t *body = NULL;
    int r = api_body_read(&http, &body, &refusal);

    assert_true(r == (body ? 0 : -EPROTO));
    return body;
}

static void expect_refused(const char *text, const char *code, const char *param,
                           const char *message)
{
    assert_null(read_bytes(text, strlen(text)));
    assert_int_equal(refusal.status, 400);
    assert_string_equal(refusal.code, code);
    assert_string_equal(refusal.param, param);
    assert_string_equal(refusal.message, message);
}

static void test_an_object_is_read(void **state)
{
    json_t *body = read_bytes(" {\"a\":1}\r\n", 10);

    (void)state;
    assert_int_equal(json_integer_value(json_object_get(body, "a")), 1);
    json_decref(body);
}

static void test_what_is_no_json_is_refused_with_its_place(void **state)
{
    (void)state;
    expect_refused("", "bad_json", "", "the body is not valid JSON: it is empty");
    expect_refused("{\"a\":\n  tru}", "bad_json", "",
                   "the body is not valid JSON at line 2, column 5: invalid token near 'tru'");
    expect_refused("[1]", "bad_json", "", "the body is not a JSON object");
    expect_refused("{} {}", "bad_json", "",
                   "the body is not valid JSON at line 1, column 4: end of file expected near '{'");
}

static void test_text_that_no_json_may_hold_is_refused(void **state)
{
    static const char *const texts[] = {"{\"a\":\"\xff\"}", "{\"a\":\"\\u0000\"}",
                                        "{\"a\":\"\\ud800\"}", "{\"a\":\"\x01\"}"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_null(read_bytes(texts[i], strlen(texts[i])));
        assert_string_equal(refusal.code, "bad_json");
        assert_non_null(strstr(refusal.message, "byte"));
    }
    assert_null(read_bytes("{\"a\":1}\0", 8));
    assert_string_equal(refusal.code, "bad_json");
}

static void test_members_that_are_there_twice_are_named(void **state)
{
    (void)state;
    expect_refused("{\"text\":1,\"text\":2}", "duplicate_member", "text",
                   "a member is given twice, at line 1, column 16");
    expect_refused("{\"b\":{\"c\":1,\n\"c\":2}}", "duplicate_member", "c",
                   "a member is given twice, at line 2, column 3");
    /* must not be shown */
    expect_refused("{\"a b\":1,\"a b\":2}", "duplicate_member", "",
                   "a member is given twice, at line 1, column 14");
}

static void test_depth_is_bounded_outside_strings(void **state)
{
    static const char brackets[] = "{\"a\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[[[[\"}";
    char text[4 * API_BODY_DEPTH_MAX];
    json_t *body;

    (void)state;
    for (int depth = API_BODY_DEPTH_MAX - 1; depth <= API_BODY_DEPTH_MAX; depth++) {
        snprintf(text, sizeof(text), "{\"a\":%.*s%.*s}", depth,
                 "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", depth,
                 "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
        body = read_bytes(text, strlen(text));
        assert_int_equal(body != NULL, depth < API_BODY_DEPTH_MAX);
        json_decref(body);
    }
    assert_string_equal(refusal.message, "the body nests more than 32 deep at byte 36");
    body = read_bytes(brackets, strlen(brackets));
    assert_non_null(body);
    json_decref(body);
}

static void test_a_body_has_its_type_and_its_limit(void **state)
{
    static char big[API_BODY_MAX + 1];
    struct http_request http = {.content_type = SL_SLICE("text/plain"), .body = SL_SLICE("{}")};
    json_t *body;

    (void)state;
    assert_int_equal(api_body_read(&http, &body, &refusal), -EPROTO);
    assert_int_equal(refusal.status, 415);
    http.content_type = SL_SLICE_NONE;
    assert_int_equal(api_body_read(&http, &body, &refusal), -EPROTO);
    assert_int_equal(refusal.status, 415);

    memset(big, ' ', sizeof(big));
    memcpy(big, "{}", 2);
    http.content_type = SL_SLICE("Application/Json ; charset=utf-8");
    http.body = sl_slice(big, sizeof(big));
    assert_int_equal(api_body_read(&http, &body, &refusal), -EPROTO);
    assert_int_equal(refusal.status, 413);
    http.body.size--;
    assert_int_equal(api_body_read(&http, &body, &refusal), 0);
    json_decref(body);
}

struct members {
    struct sl_slice text;
    double number;
    const json_t *object, *array;
};

static int read_members(const char *text, const char *inside, struct members *members)
{
    const struct api_member rows[] = {
        {"text", API_STRING, true, .ret_string = &members->text},
        {"number", API_NUMBER, false, .ret_number = &members->number},
        {"object", API_OBJECT, false, .ret_json = &members->object},
        {"array", API_ARRAY, false, .ret_json = &members->array},
    };
    json_t *body = read_bytes(text, strlen(text));
    int r;

    assert_non_null(body);
    r = api_members_read(body, inside, rows, 4, &refusal);
    if (r == 0)
        assert_string_equal(members->text.data, "x");
    json_decref(body);
    return r;
}

static void test_members_are_read_and_absent_ones_left_alone(void **state)
{
    struct members members = {.number = 7};

    (void)state;
    assert_int_equal(read_members("{\"text\":\"x\"}", NULL, &members), 0);
    assert_int_equal(members.number, 7);
    assert_null(members.object);
    assert_int_equal(
        read_members("{\"array\":[],\"number\":-1.5,\"object\":{},\"text\":\"x\"}", NULL, &members),
        0);
    assert_true(members.number == -1.5 && members.object && members.array);
    assert_int_equal(read_members("{\"number\":3,\"text\":\"x\"}", NULL, &members), 0);
    assert_true(members.number == 3);
}

static void test_members_that_are_wrong_are_named(void **state)
{
    static const struct {
        const char *text, *inside, *code, *param;
    } cases[] = {
        {"{\"text\":\"x\",\"txt\":1}", NULL, "unknown_member", "txt"},
        {"{\"text\":\"x\",\"txt\":1}", "geo", "unknown_member", "geo.txt"},
        {"{\"text\":\"x\",\"t t\":1}", NULL, "unknown_member", ""},
        {"{}", NULL, "missing_member", "text"},
        {"{}", "geo", "missing_member", "geo.text"},
        {"{\"text\":null}", NULL, "bad_type", "text"},
        {"{\"text\":1}", NULL, "bad_type", "text"},
        {"{\"text\":\"x\",\"number\":\"1\"}", NULL, "bad_type", "number"},
        {"{\"text\":\"x\",\"number\":true}", "a", "bad_type", "a.number"},
        {"{\"text\":\"x\",\"object\":[]}", NULL, "bad_type", "object"},
        {"{\"text\":\"x\",\"array\":{}}", NULL, "bad_type", "array"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct members members = {.number = 0};

        assert_int_equal(read_members(cases[i].text, cases[i].inside, &members), -EPROTO);
        assert_int_equal(refusal.status, 400);
        assert_string_equal(refusal.code, cases[i].code);
        assert_string_equal(refusal.param, cases[i].param);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_object_is_read),
        cmocka_unit_test(test_what_is_no_json_is_refused_with_its_place),
        cmocka_unit_test(test_text_that_no_json_may_hold_is_refused),
        cmocka_unit_test(test_members_that_are_there_twice_are_named),
        cmocka_unit_test(test_depth_is_bounded_outside_strings),
        cmocka_unit_test(test_a_body_has_its_type_and_its_limit),
        cmocka_unit_test(test_members_are_read_and_absent_ones_left_alone),
        cmocka_unit_test(test_members_that_are_wrong_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
