/* test_deadline_list.c - members are returned when they are due, in that order. */
#include "base/deadline_list.h"
#include "tests/support/cmocka_all.h"

enum { WAIT_MS = 100 };

struct guest {
    char name;
    struct deadline leaves;
};

static struct deadline_list list;

static int open_list(void **state)
{
    (void)state;
    list = DEADLINE_LIST_INIT(list, WAIT_MS);
    return 0;
}

static char take(uint64_t now_ms)
{
    struct deadline *due = deadline_list_take_due(&list, now_ms);

    return due ? DEADLINE_OWNER(due, struct guest, leaves)->name : '-';
}

static void test_empty_list_is_never_due(void **state)
{
    struct deadline_list other;

    (void)state;
    deadline_list_init(&other, WAIT_MS);
    assert_true(deadline_list_is_empty(&other));
    assert_true(deadline_list_is_empty(&list));
    assert_null(deadline_list_first(&list));
    assert_true(deadline_list_next_due_ms(&list) == UINT64_MAX);
    assert_null(deadline_list_take_due(&list, UINT64_MAX));
}

static void test_each_is_due_once_in_the_order_of_adding(void **state)
{
    struct guest a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'};

    (void)state;
    deadline_list_add(&list, &a.leaves, 1000);
    deadline_list_add(&list, &b.leaves, 1000);
    deadline_list_add(&list, &c.leaves, 1010);
    assert_int_equal(deadline_list_count(&list), 3);
    assert_int_equal(deadline_list_next_due_ms(&list), 1100);
    assert_int_equal(take(1099), '-');
    assert_int_equal(take(1100), 'a');
    assert_false(deadline_is_listed(&a.leaves));
    assert_int_equal(take(1100), 'b');
    assert_int_equal(take(1100), '-');
    assert_int_equal(deadline_list_next_due_ms(&list), 1110);
    assert_int_equal(take(5000), 'c');
    assert_true(deadline_list_is_empty(&list));
}

static void test_what_is_removed_is_not_due_any_more(void **state)
{
    struct guest a = {.name = 'a'}, b = {.name = 'b'};

    (void)state;
    deadline_list_add(&list, &a.leaves, 1000);
    deadline_list_add(&list, &b.leaves, 1001);
    deadline_list_remove(&list, &a.leaves);
    deadline_list_remove(&list, &a.leaves); /* not in a list: no effect */
    assert_false(deadline_is_listed(&a.leaves));
    assert_int_equal(take(2000), 'b');
    assert_int_equal(take(2000), '-');
}

static void test_what_is_renewed_waits_anew_behind_the_others(void **state)
{
    struct guest a = {.name = 'a'}, b = {.name = 'b'};

    (void)state;
    deadline_list_renew(&list, &a.leaves, 1000); /* was not in a list */
    deadline_list_add(&list, &b.leaves, 1001);
    deadline_list_renew(&list, &a.leaves, 1050);
    assert_int_equal(deadline_list_count(&list), 2);
    assert_int_equal(take(1100), '-');
    assert_int_equal(take(1101), 'b');
    assert_int_equal(take(1149), '-');
    assert_int_equal(take(1150), 'a');
}

static void test_order_holds_when_the_wait_is_made_shorter(void **state)
{
    struct guest a = {.name = 'a'}, b = {.name = 'b'};

    (void)state;
    deadline_list_add(&list, &a.leaves, 1000);
    list.wait_ms = 10;
    deadline_list_add(&list, &b.leaves, 1001);
    assert_int_equal(take(1011), 'b');
    assert_int_equal(take(1011), '-');
    assert_int_equal(take(1100), 'a');
}

static void test_member_with_a_time_of_its_own_finds_its_place(void **state)
{
    struct guest a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'};

    (void)state;
    deadline_list_add(&list, &a.leaves, 1000);
    deadline_list_add(&list, &c.leaves, 1020);
    b.leaves.due_ms = 1100; /* the same as `a` */
    deadline_list_insert(&list, &b.leaves);
    assert_int_equal(take(2000), 'a');
    assert_int_equal(take(2000), 'b');
    assert_int_equal(take(2000), 'c');
    b.leaves.due_ms = 0;
    deadline_list_add(&list, &a.leaves, 1000);
    deadline_list_insert(&list, &b.leaves);
    assert_int_equal(take(0), 'b');
}

/* The owner may add and remove members while it takes: what is not due yet is not returned. */
static void test_taking_one_may_remove_the_next(void **state)
{
    struct guest a = {.name = 'a'}, b = {.name = 'b'};

    (void)state;
    deadline_list_add(&list, &a.leaves, 1000);
    deadline_list_add(&list, &b.leaves, 1000);
    assert_int_equal(take(1100), 'a');
    deadline_list_remove(&list, &b.leaves);
    deadline_list_add(&list, &a.leaves, 1100);
    assert_int_equal(take(1100), '-');
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, open_list)
    const struct CMUnitTest tests[] = {
        TEST(test_empty_list_is_never_due),
        TEST(test_each_is_due_once_in_the_order_of_adding),
        TEST(test_what_is_removed_is_not_due_any_more),
        TEST(test_what_is_renewed_waits_anew_behind_the_others),
        TEST(test_order_holds_when_the_wait_is_made_shorter),
        TEST(test_member_with_a_time_of_its_own_finds_its_place),
        TEST(test_taking_one_may_remove_the_next),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
