/* test_backoff.c - growing delays, and their spread. */
#include <stdbool.h>

#include "base/backoff.h"
#include "gateway/process/restart_delay.h"
#include "tests/support/cmocka_all.h"

static void test_it_doubles_up_to_its_most_and_begins_anew(void **state)
{
    static const uint32_t expected[] = {20, 40, 80, 160, 320, 640, 1000, 1000};
    struct backoff backoff = {0};

    (void)state;
    for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_int_equal(backoff_peek_ms(&backoff, 20, 1000), expected[i]);
        assert_int_equal(backoff_next_ms(&backoff, 20, 1000), expected[i]);
    }
    backoff_reset(&backoff);
    assert_int_equal(backoff_next_ms(&backoff, 20, 1000), 20);
}

static void test_no_most_is_too_large(void **state)
{
    struct backoff backoff = {0};
    uint32_t before = 0;

    (void)state;
    for (unsigned i = 0; i < 40; i++) {
        uint32_t ms = backoff_next_ms(&backoff, 1, UINT32_MAX);

        assert_true(ms > before || ms == UINT32_MAX);
        before = ms;
    }
    assert_true(before == UINT32_MAX);
}

static void test_spread_is_from_half_to_all(void **state)
{
    bool seen[11] = {false};

    (void)state;
    for (unsigned i = 0; i < 2000; i++) {
        uint32_t ms = backoff_spread_ms(10);

        assert_in_range(ms, 5, 10);
        seen[ms] = true;
    }
    for (unsigned ms = 5; ms <= 10; ms++)
        assert_true(seen[ms]);
    assert_int_equal(backoff_spread_ms(0), 0);
    assert_int_equal(backoff_spread_ms(1), 1);
}

static void test_process_that_ran_for_a_while_is_started_at_once(void **state)
{
    static const uint64_t expected[] = {0, 100, 200, 400, 800, 1600, 3200, 5000, 5000};
    struct restart_delay delay = {0};

    (void)state;
    for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        assert_int_equal(restart_delay_next_ms(&delay, 50), expected[i]);
    assert_int_equal(restart_delay_next_ms(&delay, RESTART_FORGIVEN_AFTER_MS), 0);
    assert_int_equal(restart_delay_next_ms(&delay, 50), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_doubles_up_to_its_most_and_begins_anew),
        cmocka_unit_test(test_no_most_is_too_large),
        cmocka_unit_test(test_spread_is_from_half_to_all),
        cmocka_unit_test(test_process_that_ran_for_a_while_is_started_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
