/* Every form of `since`, and the messages for invalid ones. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "src/model/duration.h"
#include "src/model/id.h"
#include "src/model/moment.h"
#include "tests/support/cmocka_all.h"

#define NOW_MS UINT64_C(1800000000000) /* 2027-01-15T08:00:00Z */

static void test_each_form_is_understood(void **state)
{
    static const struct {
        const char *text;
        enum sl_moment_kind kind;
        uint64_t value;
    } cases[] = {
        {"114677036875776", SL_MOMENT_ID, UINT64_C(114677036875776)},
        {"10000000000000", SL_MOMENT_ID, UINT64_C(10000000000000)},
        {"9007199254740991", SL_MOMENT_ID, SL_ID_MAX},
        {"9999999999999", SL_MOMENT_TIME, UINT64_C(9999999999999)},
        {"1000000000000", SL_MOMENT_TIME, UINT64_C(1000000000000)},
        {"1799999999500", SL_MOMENT_TIME, UINT64_C(1799999999500)},
        {"1799999999", SL_MOMENT_TIME, UINT64_C(1799999999000)},
        {"1000000000", SL_MOMENT_TIME, UINT64_C(1000000000000)},
        {"99999999999", SL_MOMENT_TIME, UINT64_C(99999999999000)},
        {"-1h", SL_MOMENT_TIME, NOW_MS - 3600000},
        {"1h", SL_MOMENT_TIME, NOW_MS - 3600000},
        {"+1h", SL_MOMENT_TIME, NOW_MS + 3600000},
        {"90s", SL_MOMENT_TIME, NOW_MS - 90000},
        {"-500ms", SL_MOMENT_TIME, NOW_MS - 500},
        {"30m", SL_MOMENT_TIME, NOW_MS - 1800000},
        {"7d", SL_MOMENT_TIME, NOW_MS - 7 * UINT64_C(86400000)},
        {"0s", SL_MOMENT_TIME, NOW_MS},
        {"99999d", SL_MOMENT_TIME, 0},
        {"+999999999999999ms", SL_MOMENT_TIME, NOW_MS + UINT64_C(999999999999999)},
        {"+18446744073709551615ms", SL_MOMENT_TIME, UINT64_MAX},
        {"2027-01-15", SL_MOMENT_TIME, NOW_MS - 8 * 3600000},
        {"2024-02-29", SL_MOMENT_TIME, UINT64_C(1709164800000)},
        {"2027-01-15T08:00:00Z", SL_MOMENT_TIME, NOW_MS},
        {"2027-01-15T09:00:00.25+01:00", SL_MOMENT_TIME, NOW_MS + 250},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_moment moment;
        struct failure failure;

        if (sl_moment_parse(sl_slice_str(cases[i].text), NOW_MS, &moment, &failure) < 0)
            fail_msg("%s: %s", cases[i].text, failure.text);
        if (moment.kind != cases[i].kind || moment.value != cases[i].value)
            fail_msg("%s: kind %d, value %" PRIu64, cases[i].text, (int)moment.kind, moment.value);
    }
}

static void test_what_is_none_is_told_what_would_be(void **state)
{
    static const char forms[] = "neither an event id nor a time: as in -1h, 2026-11-22, "
                                "2026-11-22T10:00:00Z (in a URL + is %2B) or Unix seconds";
    static const struct {
        const char *text, *message; /* NULL: the list of forms */
    } cases[] = {
        {"", NULL},
        {"-", NULL},
        {"h", NULL},
        {"yesterday", NULL},
        {"1H", NULL},
        {"1 h", NULL},
        {"1h30m", NULL},
        {"-1", NULL},
        {"--1h", NULL},
        {"1.5h", NULL},
        {" 1h", NULL},
        {"1fortnight", NULL},
        {"99999999999999999999h", NULL},
        {"9007199254740992", NULL},
        {"99999999999999999999", NULL},
        {"0", NULL},
        {"0114677036875776", NULL},
        {"2027-01", NULL},
        {"2027-13-01", NULL},
        {"2027-02-29", NULL},
        {"2027-01-15Z", NULL},
        {"2027-01-15T09:00:00 01:00", NULL}, /* a + that was not escaped */
        {"22.11.2026", NULL},
        {"2027-01-15T08:00:00", "a time needs its zone: 2027-01-15T08:00:00Z, or an offset like "
                                "+01:00 (in a URL %2B01:00)"},
        {"7", "7 is no event id, which begin at 10000000000000, and no Unix time of this century "
              "in seconds or milliseconds; a duration has a unit, as in -1h"},
        {"100000000000", "100000000000 is no event id, which begin at 10000000000000, and no Unix "
                         "time of this century in seconds or milliseconds; a duration has a "
                         "unit, as in -1h"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *message = cases[i].message ? cases[i].message : forms;
        struct sl_moment moment;
        struct failure failure;

        if (sl_moment_parse(sl_slice_str(cases[i].text), NOW_MS, &moment, &failure) != -EINVAL)
            fail_msg("'%s' is taken for %" PRIu64, cases[i].text, moment.value);
        if (strcmp(failure.text, message) != 0)
            fail_msg("'%s': %s", cases[i].text, failure.text);
        assert_int_equal(sl_moment_parse(sl_slice_str(cases[i].text), NOW_MS, &moment, NULL),
                         -EINVAL);
    }
}

static void test_a_moment_is_a_time_and_a_cursor(void **state)
{
    struct sl_moment id = {SL_MOMENT_ID, UINT64_C(114677036875776)};
    struct sl_moment time = {SL_MOMENT_TIME, SL_ID_EPOCH_MS + 5};
    struct sl_moment old = {SL_MOMENT_TIME, 1};

    (void)state;
    assert_int_equal(sl_moment_ms(&id), sl_id_time_ms(id.value));
    assert_int_equal(sl_moment_cursor(&id), id.value);
    assert_int_equal(sl_moment_ms(&time), SL_ID_EPOCH_MS + 5);
    assert_int_equal(sl_moment_cursor(&time), 5 * SL_ID_PER_MS - 1);
    assert_int_equal(sl_moment_cursor(&old), 0);
}

static void test_durations_are_printed_as_they_are_read(void **state)
{
    static const char *const texts[] = {"0s", "1ms", "1500ms", "90s", "30m", "25h", "7d"};
    char room[SL_DURATION_TEXT_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        uint64_t ms;

        assert_int_equal(sl_duration_parse(sl_slice_str(texts[i]), &ms, NULL), 0);
        assert_string_equal(sl_duration_print(ms, room), texts[i]);
    }
    assert_string_equal(sl_duration_print(UINT64_MAX, room), "18446744073709551615ms");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_form_is_understood),
        cmocka_unit_test(test_what_is_none_is_told_what_would_be),
        cmocka_unit_test(test_a_moment_is_a_time_and_a_cursor),
        cmocka_unit_test(test_durations_are_printed_as_they_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
