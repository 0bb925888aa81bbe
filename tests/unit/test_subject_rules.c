/* Stored rules of a subject: as stored in Redis, and as a value. */
#include "gateway/front/subject_rules.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "src/call/call.h"
#include "src/database/stream_rules.h"
#include "tests/support/cmocka_all.h"

static const char name[] = "XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX";

static int add(struct subject_rules *rules, uint64_t id, const char *json)
{
    return subject_rules_add(rules, id, sl_slice_str(json));
}

static void test_rules_are_found_by_id_and_by_value(void **state)
{
    struct subject_rules rules = {.list = NULL};

    (void)state;
    assert_int_equal(add(&rules, 30, "{\"value\":\"cat\",\"tag\":\"a\"}"), 0);
    assert_int_equal(add(&rules, 10, "{\"value\":\"dog\"}"), 0);
    assert_int_equal(add(&rules, 20, "{\"value\":\"fox\",\"tag\":null,\"of\":\"later\"}"), 0);
    subject_rules_sort(&rules);
    assert_int_equal(rules.list[0].id, 10);
    assert_null(rules.list[1].tag);
    assert_string_equal(subject_rules_find(&rules, 30)->tag, "a");
    assert_null(subject_rules_find(&rules, 31));
    assert_int_equal(subject_rules_find_value(&rules, SL_SLICE("fox"))->id, 20);
    assert_null(subject_rules_find_value(&rules, SL_SLICE("fo")));
    subject_rules_done(&rules);
    assert_null(subject_rules_find(&rules, 10));
}

static void test_what_is_no_rule_is_refused(void **state)
{
    struct subject_rules rules = {.list = NULL};

    (void)state;
    assert_int_equal(add(&rules, 1, ""), -EBADMSG);
    assert_int_equal(add(&rules, 1, "[]"), -EBADMSG);
    assert_int_equal(add(&rules, 1, "{\"tag\":\"a\"}"), -EBADMSG);
    assert_int_equal(add(&rules, 1, "{\"value\":1}"), -EBADMSG);
    assert_int_equal(rules.count, 0);
    subject_rules_done(&rules);
}

static void test_a_rule_comes_back_as_it_was_kept(void **state)
{
    struct subject_rules rules = {.list = NULL};
    struct buffer text = BUFFER_INIT;

    (void)state;
    subject_rule_print("\"big \\\" house\" 茶", "", &text);
    assert_int_equal(subject_rules_add(&rules, 1, buffer_slice(&text)), 0);
    assert_string_equal(rules.list[0].value, "\"big \\\" house\" 茶");
    assert_string_equal(rules.list[0].tag, "");
    subject_rules_done(&rules);
    buffer_done(&text);
}

static void test_memory_may_run_out(void **state)
{
    struct subject_rules rules = {.list = NULL};
    int r = -ENOMEM;

    (void)state;
    for (uint64_t n = 0; r < 0; n++) {
        mem_fail_after(n);
        r = add(&rules, 1, "{\"value\":\"cat\",\"tag\":\"a\"}");
        mem_fail_never();
        assert_true(r == 0 || r == -ENOMEM);
        assert_int_equal(rules.count, r == 0);
    }
    subject_rules_done(&rules);
}

static void test_a_change_is_of_a_version(void **state)
{
    const uint64_t removed[] = {17, 18};
    const struct sl_slice added[] = {SL_SLICE("{}")};
    const struct sl_rules_change change = {.version = 5,
                                           .by = 6,
                                           .removed = removed,
                                           .removed_count = 2,
                                           .added = added,
                                           .added_count = 1};
    static const char *const expected[] = {name, "5", "6", "2", "17", "18", "{}"};
    struct sl_call call = SL_CALL_INIT;

    (void)state;
    assert_int_equal(sl_rules_change_call(&call, 8, name, &change, NULL), 0);
    assert_true(call.is_write && call.is_repeatable && call.shard < 8);
    assert_int_equal(call.argc, 6 + 7);
    for (int i = 0; i < 7; i++)
        assert_true(sl_slice_is(sl_slice(call.argv[6 + i], call.argvlen[6 + i]), expected[i]));
    sl_call_done(&call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_are_found_by_id_and_by_value),
        cmocka_unit_test(test_what_is_no_rule_is_refused),
        cmocka_unit_test(test_a_rule_comes_back_as_it_was_kept),
        cmocka_unit_test(test_memory_may_run_out),
        cmocka_unit_test(test_a_change_is_of_a_version),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
