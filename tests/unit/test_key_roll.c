#include "gateway/front/key_roll.h"
#include "tests/support/cmocka_all.h"

#include <errno.h>

#include "base/alloc.h"

enum { AFTER_MS = 60000 };

static struct {
    uint64_t known_ms; /* 0: it is not fetched */
    unsigned wanted;
} issuer;

static uint64_t known_ms(void *context, const char *name, uint64_t now_ms)
{
    (void)context;
    assert_string_equal(name, "https://a");
    return issuer.known_ms ? issuer.known_ms : now_ms;
}

static void want(void *context, const char *name)
{
    (void)context;
    assert_string_equal(name, "https://a");
    issuer.wanted++;
}

static unsigned look(struct key_roll *roll, uint64_t ms, const char *const *kids)
{
    const struct key_roll_now now = {
        .ms = ms, .after_ms = AFTER_MS, .known_ms = known_ms, .want = want};

    key_roll_begin(roll);
    for (; *kids; kids++)
        assert_int_equal(key_roll_see(roll, "https://a", *kids), 0);
    return key_roll_end(roll, &now);
}

static const char *const both[] = {"one", "two", NULL}, *const second[] = {"two", NULL};

static int begin(void **state)
{
    issuer.known_ms = issuer.wanted = 0;
    *state = key_roll_new();
    look(*state, 1000, both);
    return 0;
}

static int end(void **state)
{
    key_roll_free(*state);
    return 0;
}

static void test_a_key_that_nobody_fetches_is_gone_after_the_time(void **state)
{
    uint64_t since_ms = 0;

    assert_int_equal(look(*state, 2000, second), 0);
    assert_int_equal(look(*state, 2000 + AFTER_MS - 1, second), 0);
    assert_false(key_roll_is_gone(*state, "https://a", "one", &since_ms));
    assert_int_equal(look(*state, 2000 + AFTER_MS, second), 1);
    assert_true(key_roll_is_gone(*state, "https://a", "one", &since_ms));
    assert_int_equal(since_ms, 2000 + AFTER_MS);
    assert_false(key_roll_is_gone(*state, "https://a", "two", &since_ms));
    assert_false(key_roll_is_gone(*state, "https://b", "one", &since_ms));
    assert_int_equal(issuer.wanted, 0);
    key_roll_forget(*state, since_ms - 1);
    assert_int_equal(look(*state, 90000, second), 1);
    key_roll_forget(*state, since_ms);
    assert_int_equal(look(*state, 90000, second), 0);
}

static void test_a_key_that_is_fetched_is_gone_with_the_second_answer_only(void **state)
{
    issuer.known_ms = 2000;
    assert_int_equal(look(*state, 2500, second), 0);
    assert_int_equal(look(*state, 2500 + 10 * AFTER_MS, second), 0); /* the provider is away */
    assert_int_equal(issuer.wanted, 1);
    issuer.known_ms = 2000 + AFTER_MS - 1;
    assert_int_equal(look(*state, 2500 + 10 * AFTER_MS, second), 0);
    issuer.known_ms = 2000 + AFTER_MS;
    assert_int_equal(look(*state, 2500 + 10 * AFTER_MS, second), 1);
    assert_int_equal(issuer.wanted, 2);
}

static void test_a_key_that_comes_back_was_never_away(void **state)
{
    uint64_t since_ms;

    look(*state, 2000, second);
    look(*state, 3000, both);
    assert_int_equal(look(*state, 2000 + AFTER_MS, second), 0);
    assert_int_equal(look(*state, 2000 + 2 * AFTER_MS, second), 1);
    assert_int_equal(look(*state, 2000 + 2 * AFTER_MS, both), 0);
    assert_false(key_roll_is_gone(*state, "https://a", "one", &since_ms));
}

static void test_no_memory_loses_no_key_that_is_known(void **state)
{
    static const char *const names[] = {"3", "4", "5", "6", "7", "8"};

    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(key_roll_see(*state, "https://a", names[i]), 0);
    mem_fail_after(0);
    assert_int_equal(key_roll_see(*state, "https://a", "9"), -ENOMEM);
    assert_int_equal(key_roll_see(*state, "https://a", "one"), 0);
    mem_fail_never();
    assert_int_equal(key_roll_see(*state, "https://a", "9"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_key_that_nobody_fetches_is_gone_after_the_time,
                                        begin, end),
        cmocka_unit_test_setup_teardown(
            test_a_key_that_is_fetched_is_gone_with_the_second_answer_only, begin, end),
        cmocka_unit_test_setup_teardown(test_a_key_that_comes_back_was_never_away, begin, end),
        cmocka_unit_test_setup_teardown(test_no_memory_loses_no_key_that_is_known, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
