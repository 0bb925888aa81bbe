#include <errno.h>

#include "gateway/streams/filter_budget.h"
#include "tests/support/cmocka_all.h"

enum { MAX_BYTES = 1000 };

#define ADA SL_SLICE("ada")
#define BOB SL_SLICE("bob")

static struct filter_budget *budget;

static int begin(void **state)
{
    (void)state;
    budget = filter_budget_new();
    return budget ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    filter_budget_free(budget);
    return 0;
}

static int set(struct sl_slice name, struct filter_share *share, size_t bytes)
{
    return filter_budget_set(budget, name, bytes, MAX_BYTES, share);
}

static void test_shares_of_a_holder_have_one_bound(void **state)
{
    struct filter_share first = {0}, second = {0};

    (void)state;
    assert_int_equal(set(ADA, &first, MAX_BYTES - 1), 0);
    assert_int_equal(set(ADA, &second, 2), -EDQUOT);
    assert_int_equal(second.bytes, 0);
    assert_int_equal(set(ADA, &second, 1), 0);
    assert_int_equal(set(ADA, &second, 2), -EDQUOT);
    assert_int_equal(second.bytes, 1);
    assert_int_equal(set(ADA, &first, 0), 0);
    assert_int_equal(set(ADA, &second, MAX_BYTES), 0);
    assert_int_equal(set(ADA, &second, 0), 0);
}

static void test_holders_are_counted_apart(void **state)
{
    struct filter_share ada = {0}, bob = {0};

    (void)state;
    assert_int_equal(set(ADA, &ada, MAX_BYTES), 0);
    assert_int_equal(set(BOB, &bob, MAX_BYTES), 0);
    assert_int_equal(set(ADA, &ada, 0), 0);
    assert_int_equal(set(BOB, &bob, 0), 0);
}

static void test_more_than_there_can_be_is_refused(void **state)
{
    struct filter_share first = {0}, second = {0};

    (void)state;
    assert_int_equal(set(ADA, &first, SIZE_MAX), -EDQUOT);
    assert_int_equal(set(ADA, &first, 1), 0);
    assert_int_equal(set(ADA, &second, SIZE_MAX), -EDQUOT); /* must not wrap around */
    assert_int_equal(set(ADA, &first, 0), 0);
}

/* A reload may set a limit below what is in use. */
static void test_a_decrease_is_always_accepted(void **state)
{
    struct filter_share share = {0};

    (void)state;
    assert_int_equal(set(ADA, &share, MAX_BYTES), 0);
    assert_int_equal(filter_budget_set(budget, ADA, MAX_BYTES - 1, 10, &share), 0);
    assert_int_equal(filter_budget_set(budget, ADA, MAX_BYTES, 10, &share), -EDQUOT);
    assert_int_equal(share.bytes, MAX_BYTES - 1);
    assert_int_equal(filter_budget_set(budget, ADA, 0, 10, &share), 0);
}

static void test_nothing_needs_no_memory(void **state)
{
    struct filter_share share = {0};

    (void)state;
    assert_int_equal(filter_budget_set(budget, ADA, 0, 0, &share), 0);
    assert_null(share.holder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_shares_of_a_holder_have_one_bound, begin, end),
        cmocka_unit_test_setup_teardown(test_holders_are_counted_apart, begin, end),
        cmocka_unit_test_setup_teardown(test_more_than_there_can_be_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(test_a_decrease_is_always_accepted, begin, end),
        cmocka_unit_test_setup_teardown(test_nothing_needs_no_memory, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
