#include "base/log_json.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/alloc.h"
#include "base/log.h"

/* Uses a buffer that is exactly as large as promised, so that asan notices an overflow. */
static void expect(struct sl_slice line, const char *json)
{
    char *room = mem_alloc(LOG_JSON_SIZE(line.size));
    size_t size = log_json(line, room);

    assert_true(size < LOG_JSON_SIZE(line.size));
    assert_int_equal(size, strlen(json));
    assert_memory_equal(room, json, size);
    mem_free(room);
}

static void test_pairs_become_members(void **state)
{
    (void)state;
    expect(SL_SLICE("ts=2026-11-21T01:02:03.456Z level=info event=ready port=8080"),
           "{\"ts\":\"2026-11-21T01:02:03.456Z\",\"level\":\"info\",\"event\":\"ready\",\"port\":"
           "8080}");
    expect(SL_SLICE(""), "{}");
    expect(SL_SLICE("why="), "{\"why\":\"\"}");
}

static void test_numbers_stay_what_they_are(void **state)
{
    (void)state;
    expect(SL_SLICE("a=0 b=-7 c=0.5 d=12.25"), "{\"a\":0,\"b\":-7,\"c\":0.5,\"d\":12.25}");
    expect(SL_SLICE("a=007 b=1. c=.5 d=1.2.3 e=- f=+1 g=1e5"),
           "{\"a\":\"007\",\"b\":\"1.\",\"c\":\".5\",\"d\":\"1.2.3\",\"e\":\"-\",\"f\":\"+1\","
           "\"g\":\"1e5\"}");
    expect(SL_SLICE("id=114677036875776 id=9007199254740991"),
           "{\"id\":114677036875776,\"id\":\"9007199254740991\"}");
    expect(SL_SLICE("subject=\"42\""), "{\"subject\":\"42\"}");
}

static void test_quoted_text_keeps_its_spaces_and_escapes(void **state)
{
    char room[LOG_QUOTE_SIZE];
    char line[LOG_QUOTE_SIZE + 16];

    (void)state;
    snprintf(line, sizeof(line), "why=%s n=1", log_quote(SL_SLICE("a \"b\"\\\n"), room));
    expect(sl_slice_str(line), "{\"why\":\"a \\u0022b\\u0022\\u005c\\u000a\",\"n\":1}");
    snprintf(line, sizeof(line), "why=%s",
             log_quote(SL_SLICE("\xc2\x9b\\\\u202e\xe2\x80\xae"), room));
    expect(sl_slice_str(line), "{\"why\":\"\\u009b\\u005c\\u005cu202e\\u202e\"}");
    expect(SL_SLICE("why=\"cut o"), "{\"why\":\"\\u0022cut o\"}");
    expect(SL_SLICE("dir=C:\\xyz"), "{\"dir\":\"C:\\u005cxyz\"}");
}

static void test_what_is_no_utf8_is_replaced(void **state)
{
    (void)state;
    expect(SL_SLICE("a=\"\xc3\xa9\xc3\""), "{\"a\":\"\xc3\xa9\xef\xbf\xbd\"}");
    expect(SL_SLICE("a=\xff\xff"), "{\"a\":\"\xef\xbf\xbd\xef\xbf\xbd\"}");
}

static void test_every_line_is_an_object(void **state)
{
    static const char bytes[] = "ab= \"\\x2f1.-\x01\x7f\xc3\xa9\xff";
    unsigned seed = 20261121;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        char text[40];
        char room[LOG_JSON_SIZE(sizeof(text)) + 1];
        size_t size = (size_t)(rand_r(&seed) % (int)sizeof(text));
        json_error_t error;
        json_t *json;

        for (size_t i = 0; i < size; i++)
            text[i] = bytes[(size_t)rand_r(&seed) % (sizeof(bytes) - 1)];
        json = json_loadb(room, log_json(sl_slice(text, size), room), 0, &error);
        if (!json)
            fail_msg("round %d: %s: '%.*s'", round, error.text, (int)size, text);
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs_become_members),
        cmocka_unit_test(test_numbers_stay_what_they_are),
        cmocka_unit_test(test_quoted_text_keeps_its_spaces_and_escapes),
        cmocka_unit_test(test_what_is_no_utf8_is_replaced),
        cmocka_unit_test(test_every_line_is_an_object),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
