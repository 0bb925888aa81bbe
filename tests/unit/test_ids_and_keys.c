#include <errno.h>

#include "base/clock.h"
#include "src/model/id.h"
#include "src/model/user_name.h"
#include "src/model/keys.h"
#include "tests/support/cmocka_all.h"

static void test_id_holds_time_shard_and_number(void **state)
{
    uint64_t id = UINT64_C(12345) * 4096 + 7 * 64 + 63;

    (void)state;
    assert_int_equal(sl_id_time_ms(id), SL_ID_EPOCH_MS + 12345);
    assert_int_equal(sl_id_shard(id), 7);
    assert_int_equal(sl_id_shard(id + 1), 8);
    assert_int_equal(sl_id_shard(SL_ID_MAX), 63);
}

static void test_epoch_is_the_first_of_january_2026(void **state)
{
    char text[CLOCK_RFC3339_SIZE];

    (void)state;
    clock_format_rfc3339(sl_id_time_ms(1), text);
    assert_string_equal(text, "2026-01-01T00:00:00.000Z");
}

static void test_first_id_of_a_time_is_its_own_time(void **state)
{
    (void)state;
    assert_int_equal(sl_id_first_at(SL_ID_EPOCH_MS + 5), 5 * 4096);
    assert_int_equal(sl_id_time_ms(sl_id_first_at(SL_ID_EPOCH_MS + 5)), SL_ID_EPOCH_MS + 5);
    assert_int_equal(sl_id_first_at(SL_ID_EPOCH_MS), 0);
    assert_int_equal(sl_id_first_at(0), 0);
    assert_int_equal(sl_id_first_at(UINT64_MAX), SL_ID_MAX);
}

static void test_printed_ids_parse_to_themselves(void **state)
{
    static const uint64_t ids[] = {1, 9, 4096, UINT64_C(114677036875776), SL_ID_MAX};
    char text[SL_ID_TEXT_SIZE];
    uint64_t id;

    (void)state;
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        id = 0;
        assert_int_equal(sl_id_parse(sl_slice_str(sl_id_print(ids[i], text)), &id), 0);
        assert_int_equal(id, ids[i]);
    }
}

static void test_text_that_is_no_id_is_refused(void **state)
{
    static const char *const texts[] = {"",
                                        "0",
                                        "01",
                                        "-1",
                                        "+1",
                                        " 1",
                                        "1 ",
                                        "1.0",
                                        "x",
                                        "12a",
                                        "0x1",
                                        "9007199254740992",
                                        "99999999999999999"};
    uint64_t id = 7;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(sl_id_parse(sl_slice_str(texts[i]), &id), -EINVAL);
    assert_int_equal(id, 7);
}

static void test_keys_of_a_shard_share_its_hash_tag(void **state)
{
    char room[SL_KEY_SIZE];

    (void)state;
    assert_string_equal(sl_key(0, "live", room), "sluice:{0}:live");
    assert_string_equal(sl_key(63, "log", room), "sluice:{63}:log");
    assert_string_equal(sl_key_of("following", 5 * 4096 + 3 * 64 + 1, room),
                        "sluice:{3}:following:20673");
    assert_string_equal(sl_key_of("hidden_from", SL_ID_MAX, room),
                        "sluice:{63}:hidden_from:9007199254740991");
}

static void test_digits_are_an_id_and_all_else_is_a_login(void **state)
{
    static const struct {
        const char *text, *login; /* NULL: an id */
        uint64_t id;
    } good[] = {
        {"42", NULL, 42}, {"@42", "42", 0}, {"ada", "ada", 0}, {"@ada", "ada", 0}, {"4a", "4a", 0}};
    static const char *const bad[] = {"", "@", "0", "007", "9007199254740992"};
    struct sl_slice login;
    uint64_t id;

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(sl_user_name_parse(sl_slice_str(good[i].text), &id, &login), 0);
        assert_int_equal(id, good[i].id);
        assert_true(good[i].login ? sl_slice_is(login, good[i].login) : !login.data);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(sl_user_name_parse(sl_slice_str(bad[i]), &id, &login), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digits_are_an_id_and_all_else_is_a_login),
        cmocka_unit_test(test_id_holds_time_shard_and_number),
        cmocka_unit_test(test_epoch_is_the_first_of_january_2026),
        cmocka_unit_test(test_first_id_of_a_time_is_its_own_time),
        cmocka_unit_test(test_printed_ids_parse_to_themselves),
        cmocka_unit_test(test_text_that_is_no_id_is_refused),
        cmocka_unit_test(test_keys_of_a_shard_share_its_hash_tag),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
