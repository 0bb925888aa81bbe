#include <errno.h>

#include "gateway/http/http.h"
#include "tests/support/cmocka_all.h"

static void expect_json(const struct http_refusal *refusal, const char *json)
{
    struct buffer printed = BUFFER_INIT;

    http_refusal_print(refusal, &printed);
    assert_string_equal(buffer_str(&printed), json);
    buffer_done(&printed);
}

static void test_refusal_says_what_is_wrong_with_which_parameter(void **state)
{
    struct http_refusal refusal;

    (void)state;
    assert_int_equal(http_refuse(&refusal, 400, "bad_box", "locations", "box %d is \"bad\"", 3),
                     -EPROTO);
    assert_int_equal(refusal.status, 400);
    expect_json(&refusal, "{\"error\":{\"code\":\"bad_box\",\"message\":\"box 3 is \\\"bad\\\"\","
                          "\"param\":\"locations\"}}\n");
    http_refuse(&refusal, 404, "not_found", NULL, "nothing here");
    assert_null(refusal.www_authenticate);
    assert_null(refusal.allow);
    expect_json(&refusal, "{\"error\":{\"code\":\"not_found\",\"message\":\"nothing here\"}}\n");
}

static void test_long_message_is_cut_between_characters(void **state)
{
    struct http_refusal refusal;
    char text[HTTP_MESSAGE_SIZE * 2] = "";

    (void)state;
    for (size_t shift = 0; shift < 3; shift++) {
        memset(text, 'x', shift);
        for (size_t at = shift; at + 3 < sizeof(text); at += 3)
            memcpy(text + at, "\xe4\xb8\xad", 4);
        http_refuse(&refusal, 400, "x", NULL, "%s", text);
        assert_int_equal(strlen(refusal.message), (HTTP_MESSAGE_SIZE - 1 - shift) / 3 * 3 + shift);
    }
}

static void test_parameter_of_strange_name_is_not_repeated(void **state)
{
    static const char *const names[] = {
        "a b", "a\"", "a\n", "\xc3\xa9",
        "0123456789012345678901234567890123456789012345678901234567890123"};
    struct http_refusal refusal;

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        http_refuse(&refusal, 400, "x", names[i], "m");
        assert_string_equal(refusal.param, "");
    }
    http_refuse(&refusal, 400, "x", "trakc", "m");
    assert_string_equal(refusal.param, "trakc");
}

static void test_every_status_has_a_reason(void **state)
{
    (void)state;
    assert_string_equal(http_reason(404), "Not Found");
    assert_string_equal(http_reason(429), "Too Many Requests");
    assert_string_equal(http_reason(499), "Error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusal_says_what_is_wrong_with_which_parameter),
        cmocka_unit_test(test_long_message_is_cut_between_characters),
        cmocka_unit_test(test_parameter_of_strange_name_is_not_repeated),
        cmocka_unit_test(test_every_status_has_a_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
