#include <jansson.h>

#include "gateway/front/farewell.h"
#include "tests/support/cmocka_all.h"

static void test_every_farewell_is_json_with_a_code_of_the_design(void **state)
{
    (void)state;
    for (int i = 0; i < FAREWELL_COUNT; i++) {
        const struct farewell_row *row = farewell_row((enum farewell)i);
        struct buffer text = BUFFER_INIT;
        json_t *json;

        farewell_print((enum farewell)i, 9007199254740991, 1500, &text);
        json = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(json);
        assert_string_equal(json_string_value(json_object_get(json, "type")), "disconnect");
        assert_string_equal(json_string_value(json_object_get(json, "code")), row->code);
        assert_string_equal(json_string_value(json_object_get(json, "reason")), row->reason);
        assert_string_equal(json_string_value(json_object_get(json, "cursor")), "9007199254740991");
        assert_int_equal(json_integer_value(json_object_get(json, "retry_ms")),
                         row->come_back ? 1500 : 0);
        json_decref(json);
        buffer_done(&text);
    }
}

static void test_farewell_without_a_cursor_has_none(void **state)
{
    struct buffer text = BUFFER_INIT;

    (void)state;
    farewell_print(FAREWELL_BAD_MESSAGE, 0, 1500, &text);
    assert_string_equal(buffer_str(&text), "{\"type\":\"disconnect\",\"code\":\"bad_message\","
                                           "\"reason\":\"the client broke the protocol\"}");
    buffer_done(&text);
}

static void test_close_codes_are_those_of_the_design(void **state)
{
    static const uint16_t codes[FAREWELL_COUNT] = {
        [FAREWELL_DRAINING] = 1012,      [FAREWELL_TOKEN_EXPIRED] = 4001,
        [FAREWELL_TOKEN_REVOKED] = 1008, [FAREWELL_REPLACED] = 4003,
        [FAREWELL_TOO_SLOW] = 4008,      [FAREWELL_BAD_MESSAGE] = 1002,
        [FAREWELL_TOO_BIG] = 1009,       [FAREWELL_BAD_UTF8] = 1007,
        [FAREWELL_BAD_DATA] = 1003,      [FAREWELL_INTERNAL] = 1011};

    (void)state;
    for (int i = 0; i < FAREWELL_COUNT; i++)
        assert_int_equal(farewell_row((enum farewell)i)->close_code, codes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_farewell_is_json_with_a_code_of_the_design),
        cmocka_unit_test(test_farewell_without_a_cursor_has_none),
        cmocka_unit_test(test_close_codes_are_those_of_the_design),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
