/* The table of settings, their texts, and reading and changing them in a real Redis. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "src/call/reply.h"
#include "src/database/settings.h"
#include "src/model/id.h"
#include "tests/support/core_group.h"

static const struct sl_setting *named(const char *name)
{
    size_t i;

    assert_int_equal(sl_setting_find(sl_slice_str(name), &i, NULL), 0);
    return sl_setting_at(i);
}

/* ---- the table and its values ---- */

static void test_each_setting_is_found_and_its_bounds_come_back(void **state)
{
    char room[SL_SETTING_TEXT_SIZE];
    struct failure failure;
    size_t found;

    (void)state;
    for (size_t i = 0; i < sl_setting_count(); i++) {
        const struct sl_setting *setting = sl_setting_at(i);
        const uint64_t values[] = {setting->lowest, setting->fallback, setting->highest};

        assert_int_equal(sl_setting_find(sl_slice_str(setting->name), &found, NULL), 0);
        assert_int_equal(found, i);
        assert_true(setting->highest <= SL_ID_MAX); /* exact in Lua */
        for (size_t v = 0; v < 3; v++) {
            uint64_t parsed = 77;

            sl_setting_print(setting, values[v], room);
            assert_int_equal(sl_setting_parse(setting, sl_slice_str(room), &parsed, NULL), 0);
            assert_int_equal(parsed, values[v]);
        }
    }
    assert_int_equal(sl_setting_find(SL_SLICE("log-cou"), &found, &failure), -ENOENT);
    assert_string_equal(failure.text, "there is no setting 'log-cou'");
}

static void test_texts_of_values(void **state)
{
    static const struct {
        const char *name, *text;
        uint64_t value; /* 0: refused */
        const char *printed;
    } cases[] = {
        {"log-count", "1", 1, "1"},
        {"log-count", "0012", 12, "12"},
        {"log-count", "1000000000000", 1000000000000, "1000000000000"},
        {"log-count", "1000000000001", 0, "log-count is from 1 to 1000000000000"},
        {"log-count", "0", 0, "log-count is from 1 to 1000000000000"},
        {"log-count", "", 0, "'' is not a number"},
        {"log-count", "-1", 0, "'-1' is not a number"},
        {"log-count", "1k", 0, "'1k' is not a number"},
        {"log-count", "99999999999999999999", 0, "is not a number"},
        {"log-age", "24h", 86400000, "1d"},
        {"log-age", "90s", 90000, "90s"},
        {"log-age", "90m", 5400000, "90m"},
        {"log-age", "1500ms", 1500, "1500ms"},
        {"log-age", "3650d", 315360000000, "3650d"},
        {"log-age", "3651d", 0, "log-age is from 1s to 3650d"},
        {"log-age", "999ms", 0, "log-age is from 1s to 3650d"},
        {"log-age", "0s", 0, "log-age is from 1s to 3650d"},
        {"log-age", "999999999999999d", 0, "'999999999999999d' is not a duration"},
        {"log-age", "24", 0, "'24' is not a duration like 90s, 30m, 24h or 7d"},
        {"log-age", "h", 0, "'h' is not a duration"},
        {"log-age", "24 h", 0, "'24 h' is not a duration"},
        {"log-age", "1h30m", 0, "'1h30m' is not a duration"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct sl_setting *setting = named(cases[i].name);
        char room[SL_SETTING_TEXT_SIZE];
        struct failure failure = {""};
        uint64_t value = 77;
        int r = sl_setting_parse(setting, sl_slice_str(cases[i].text), &value, &failure);

        assert_int_equal(r, cases[i].value ? 0 : -EINVAL);
        assert_int_equal(value, cases[i].value ? cases[i].value : 77);
        if (r == 0)
            assert_string_equal(sl_setting_print(setting, value, room), cases[i].printed);
        else if (!strstr(failure.text, cases[i].printed))
            fail_msg("said '%s', not '%s'", failure.text, cases[i].printed);
    }
}

static void test_calls_fail_as_a_whole_when_memory_runs_out(void **state)
{
    const struct sl_meta meta = {.shards = 1};
    const uint64_t value = 5;
    struct sl_call call = SL_CALL_INIT;
    int r;

    (void)state;
    for (uint64_t n = 0;; n++) {
        mem_fail_after(n);
        r = sl_settings_call(&call, 0, NULL);
        if (r == 0)
            r = sl_setting_change_call(&call, &meta, 0, named("log-count"), &value, NULL);
        mem_fail_never();
        sl_call_done(&call);
        if (r == 0)
            break;
        assert_int_equal(r, -ENOMEM);
    }
    assert_int_equal(
        sl_setting_change_call(&call, &meta, 0, named("log-count"), &(uint64_t){0}, NULL), -EINVAL);
}

/* ---- in a database ---- */

static int change(uint32_t shard, const char *name, const uint64_t *value)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r;

    assert_int_equal(sl_setting_change_call(&call, &core.meta, shard, named(name), value, NULL), 0);
    assert_true(call.is_repeatable);
    assert_int_equal(sl_redis_link_run(core.link, &call, &reply, NULL), 0);
    r = sl_reply_check(reply, &core.failure);
    freeReplyObject(reply);
    sl_call_done(&call);
    return r;
}

static int read_settings(uint32_t shard, struct sl_settings *ret_settings)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r;

    assert_int_equal(sl_settings_call(&call, shard, NULL), 0);
    assert_int_equal(sl_redis_link_run(core.link, &call, &reply, NULL), 0);
    r = sl_settings_reply(reply, ret_settings, &core.failure);
    freeReplyObject(reply);
    sl_call_done(&call);
    return r;
}

static void test_setting_is_the_default_until_it_is_set_and_after_it_is_taken_back(void **state)
{
    struct sl_settings settings;
    const uint64_t count = 300;
    size_t i;

    (void)state;
    assert_int_equal(sl_setting_find(SL_SLICE("log-count"), &i, NULL), 0);
    assert_int_equal(read_settings(1, &settings), 0);
    assert_int_equal(settings.at[i].value, 1000000);
    assert_false(settings.at[i].is_set);

    assert_int_equal(change(1, "log-count", &count), 0);
    assert_int_equal(read_settings(1, &settings), 0);
    assert_int_equal(settings.at[i].value, 300);
    assert_true(settings.at[i].is_set);
    assert_int_equal(read_settings(0, &settings), 0);
    assert_false(settings.at[i].is_set);

    assert_int_equal(change(1, "log-count", NULL), 0);
    assert_int_equal(read_settings(1, &settings), 0);
    assert_int_equal(settings.at[i].value, 1000000);
    assert_false(settings.at[i].is_set);
}

static void test_damaged_setting_is_told_and_set_anew(void **state)
{
    struct sl_settings settings;
    const uint64_t count = 300;

    (void)state;
    freeReplyObject(core_command(&core, "HSET sluice:{0}:meta log_count many log_age_ms 5"));
    assert_int_equal(read_settings(0, &settings), -EBADMSG);
    assert_string_equal(core.failure.text,
                        "log_count in meta is 'many', which log-count cannot be");
    assert_int_equal(change(0, "log-count", &count), 0);
    assert_int_equal(read_settings(0, &settings), -EBADMSG);
    assert_string_equal(core.failure.text, "log_age_ms in meta is '5', which log-age cannot be");
    assert_int_equal(change(0, "log-age", NULL), 0);
    assert_int_equal(read_settings(0, &settings), 0);
}

static void test_nothing_is_set_where_no_database_is(void **state)
{
    const uint64_t count = 300;

    (void)state;
    freeReplyObject(core_command(&core, "DEL sluice:{1}:meta"));
    assert_int_equal(change(1, "log-count", &count), -ENODATA);
    assert_int_equal(core_number(&core, "EXISTS sluice:{1}:meta"), 0);

    freeReplyObject(core_command(&core, "SET sluice:{0}:log text"));
    assert_int_equal(change(0, "log-count", &count), -EBADMSG);
    assert_int_equal(core_number(&core, "HEXISTS sluice:{0}:meta log_count"), 0);
}

static void test_log_shrinks_at_once_when_its_limit_falls(void **state)
{
    const uint64_t years = 315360000000, count = 300, second = 1000;

    (void)state;
    assert_int_equal(change(0, "log-age", &years), 0);
    for (int i = 1; i <= 1000; i++)
        freeReplyObject(core_command(&core, "XADD sluice:{0}:log %d-0 p %d e {}", i, i - 1));
    assert_int_equal(change(0, "log-count", &count), 0);
    assert_int_equal(core_number(&core, "XLEN sluice:{0}:log"), 300);
    assert_int_equal(change(0, "log-age", &second), 0);
    assert_int_equal(core_number(&core, "XLEN sluice:{0}:log"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_setting_is_found_and_its_bounds_come_back),
        cmocka_unit_test(test_texts_of_values),
        cmocka_unit_test(test_calls_fail_as_a_whole_when_memory_runs_out),
        CORE_TEST(test_setting_is_the_default_until_it_is_set_and_after_it_is_taken_back),
        CORE_TEST(test_damaged_setting_is_told_and_set_anew),
        CORE_TEST(test_nothing_is_set_where_no_database_is),
        CORE_TEST(test_log_shrinks_at_once_when_its_limit_falls),
    };

    shards = 2;
    return cmocka_run_group_tests(tests, core_group_start, core_group_stop);
}
