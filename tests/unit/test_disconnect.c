#include <jansson.h>

#include "gateway/front/disconnect.h"
#include "tests/support/cmocka_all.h"

static void test_every_disconnect_is_json_with_a_code_of_the_design(void **state)
{
    (void)state;
    for (int i = 0; i < DISCONNECT_REASON_COUNT; i++) {
        const struct disconnect_row *row = disconnect_row((enum disconnect_reason)i);
        struct buffer text = BUFFER_INIT;
        json_t *json;

        disconnect_print((enum disconnect_reason)i, &(struct sl_cursor){.id = SL_ID_MAX}, 1500,
                         &text);
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

static void test_disconnect_without_a_cursor_has_none(void **state)
{
    struct buffer text = BUFFER_INIT;

    (void)state;
    disconnect_print(DISCONNECT_BAD_MESSAGE, NULL, 1500, &text);
    assert_string_equal(buffer_str(&text),
                        "{\"type\":\"disconnect\",\"code\":\"bad_message\",\"reason\":\"the "
                        "client violated the protocol\"}");
    buffer_done(&text);
}

static void test_close_codes_are_those_of_the_design(void **state)
{
    static const uint16_t codes[DISCONNECT_REASON_COUNT] = {
        [DISCONNECT_DRAINING] = 1012,      [DISCONNECT_TOKEN_EXPIRED] = 4001,
        [DISCONNECT_TOKEN_REVOKED] = 1008, [DISCONNECT_REPLACED] = 4003,
        [DISCONNECT_TOO_SLOW] = 4008,      [DISCONNECT_BAD_MESSAGE] = 1002,
        [DISCONNECT_UNHEARD] = 1002,       [DISCONNECT_TOO_BIG] = 1009,
        [DISCONNECT_BAD_UTF8] = 1007,      [DISCONNECT_BAD_DATA] = 1003,
        [DISCONNECT_INTERNAL] = 1011,      [DISCONNECT_BUSY] = 1013,
        [DISCONNECT_HOME_FULL] = 1013,     [DISCONNECT_COMPLETE] = 1000,
        [DISCONNECT_ENDED] = 4004,         [DISCONNECT_QUOTA] = 4012};

    (void)state;
    for (int i = 0; i < DISCONNECT_REASON_COUNT; i++)
        assert_int_equal(disconnect_row((enum disconnect_reason)i)->close_code, codes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_disconnect_is_json_with_a_code_of_the_design),
        cmocka_unit_test(test_disconnect_without_a_cursor_has_none),
        cmocka_unit_test(test_close_codes_are_those_of_the_design),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
