/* Both forms of a cursor: what is accepted, error messages for the rest, and the treatment of
 * shards. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/model/cursor.h"
#include "tests/support/cmocka_all.h"

#define LONGEST                                                                                    \
    "9007199254740991~9007199254740987:ffff000000000000~9007199254740988:ffff00000000"             \
    "~9007199254740989:ffff0000~9007199254740990:ffff"

static void test_what_is_printed_is_read_again(void **state)
{
    static const char *const texts[] = {
        "1",
        "114677036875776",
        "114677036875776~0:1",
        "114677036875776~114677036740608:5",
        "114677036875776~114677036740608:8000000000000000",
        "114677036875776~7:2~114677036740608:5",
        "114677036875776~1:1~2:2~3:4~4:8",
        LONGEST,
    };
    char room[SL_CURSOR_TEXT_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct sl_cursor cursor;
        struct failure failure;

        if (sl_cursor_parse(sl_slice_str(texts[i]), &cursor, &failure) < 0)
            fail_msg("%s: %s", texts[i], failure.text);
        assert_string_equal(sl_cursor_print(&cursor, room), texts[i]);
    }
    assert_true(strlen(LONGEST) <= SL_CURSOR_TEXT_SIZE - 1);
}

static void test_the_longest_cursor_has_room(void **state)
{
    struct sl_cursor cursor = {.id = SL_ID_MAX, .group_count = SL_CURSOR_GROUPS_MAX};
    char room[SL_CURSOR_TEXT_SIZE];

    (void)state;
    for (uint32_t i = 0; i < SL_CURSOR_GROUPS_MAX; i++)
        cursor.groups[i] = (struct sl_cursor_group){SL_ID_MAX - 4 + i, UINT64_MAX};
    assert_int_equal(strlen(sl_cursor_print(&cursor, room)), SL_CURSOR_TEXT_SIZE - 1);
}

static void test_what_is_wrong_is_said(void **state)
{
    static const char begins[] = "a cursor begins with an event id";
    static const char pair[] = "a cursor has ID:BITS behind a ~";
    static const char low[] = "a cursor has an event id between ~ and :";
    static const char bits[] = "a cursor has a bit for each shard, in hexadecimal, behind a :";
    static const char below[] = "an id behind a ~ is below the cursor's own";
    static const char rise[] = "the ids behind the ~ of a cursor rise";
    static const char once[] = "a cursor names a shard once";
    static const char many[] = "a cursor has no more than 4 groups behind its id";
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", begins},
        {"0", begins},
        {"x", begins},
        {"007", begins},
        {"~5:1", begins},
        {" 7", begins},
        {"9007199254740992", begins},
        {"7~", pair},
        {"7~5", pair},
        {"7~5:1~", pair},
        {"7~:1", low},
        {"7~05:1", low},
        {"7~-5:1", low},
        {"7~5:", bits},
        {"7~5:0", bits},
        {"7~5:01", bits},
        {"7~5:A", bits},
        {"7~5:0x1", bits},
        {"7~5:1 ", bits},
        {"7~5:1:1", bits},
        {"7~5:10000000000000000", bits},
        {"7~7:1", below},
        {"7~8:1", below},
        {"7~5:1~4:2", rise},
        {"7~5:1~5:2", rise},
        {"7~4:1~5:3", once},
        {"9~1:1~2:2~3:4~4:8~5:10", many},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_cursor cursor = {.id = 42};
        struct failure failure = {""};
        size_t size = strlen(cases[i].text);
        char *copy = malloc(size + 1); /* has no byte after it, for the sanitizer */

        memcpy(copy, cases[i].text, size);
        assert_int_equal(sl_cursor_parse(sl_slice(copy, size), &cursor, &failure), -EINVAL);
        free(copy);
        if (strcmp(failure.text, cases[i].why) != 0)
            fail_msg("%s: %s", cases[i].text, failure.text);
        assert_int_equal(cursor.id, 42);
    }
}

static void test_a_shard_is_complete_to_its_group_or_to_the_id(void **state)
{
    struct sl_cursor cursor = {.id = 100};
    char room[SL_CURSOR_TEXT_SIZE];

    (void)state;
    assert_true(sl_cursor_is_plain(&cursor));
    sl_cursor_lower(&cursor, 3, 100);
    sl_cursor_lower(&cursor, 3, 120);
    assert_true(sl_cursor_is_plain(&cursor));
    sl_cursor_lower(&cursor, 3, 90);
    sl_cursor_lower(&cursor, 0, 50);
    sl_cursor_lower(&cursor, 63, 90);
    assert_string_equal(sl_cursor_print(&cursor, room), "100~50:1~90:8000000000000008");
    assert_int_equal(sl_cursor_of_shard(&cursor, 0), 50);
    assert_int_equal(sl_cursor_of_shard(&cursor, 1), 100);
    assert_int_equal(sl_cursor_of_shard(&cursor, 3), 90);
    assert_int_equal(sl_cursor_of_shard(&cursor, 63), 90);
}

static void test_a_shard_too_many_shares_a_lower_group(void **state)
{
    struct sl_cursor cursor = {.id = 100};
    char room[SL_CURSOR_TEXT_SIZE];

    (void)state;
    for (uint32_t shard = 0; shard < SL_CURSOR_GROUPS_MAX; shard++)
        sl_cursor_lower(&cursor, shard, 10 + 10 * shard);
    sl_cursor_lower(&cursor, 4, 25);
    assert_string_equal(sl_cursor_print(&cursor, room), "100~10:1~20:12~30:4~40:8");
    sl_cursor_lower(&cursor, 5, 5);
    assert_string_equal(sl_cursor_print(&cursor, room), "100~5:21~20:12~30:4~40:8");
    sl_cursor_lower(&cursor, 6, 99);
    assert_string_equal(sl_cursor_print(&cursor, room), "100~5:21~20:12~30:4~40:48");
}

/* However many shards are behind: a cursor never claims too much of one, and its text is parsed
 * again. */
static void test_whatever_is_lowered_claims_too_little_at_most(void **state)
{
    (void)state;
    srand(1);
    for (int round = 0; round < 2000; round++) {
        struct sl_cursor cursor = {.id = 1000}, again;
        uint64_t lows[SL_SHARDS_MAX];
        char room[SL_CURSOR_TEXT_SIZE], room_again[SL_CURSOR_TEXT_SIZE];

        for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++) {
            lows[shard] = rand() % 8 == 0 ? (uint64_t)(rand() % 1100) : cursor.id;
            sl_cursor_lower(&cursor, shard, lows[shard]);
        }
        for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++)
            assert_true(sl_cursor_of_shard(&cursor, shard) <= lows[shard]);
        sl_cursor_print(&cursor, room);
        assert_int_equal(sl_cursor_parse(sl_slice_str(room), &again, NULL), 0);
        assert_string_equal(sl_cursor_print(&again, room_again), room);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_printed_is_read_again),
        cmocka_unit_test(test_the_longest_cursor_has_room),
        cmocka_unit_test(test_what_is_wrong_is_said),
        cmocka_unit_test(test_a_shard_is_complete_to_its_group_or_to_the_id),
        cmocka_unit_test(test_a_shard_too_many_shares_a_lower_group),
        cmocka_unit_test(test_whatever_is_lowered_claims_too_little_at_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
