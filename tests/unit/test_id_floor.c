#include "base/stable_hash.h"
#include "gateway/delivery/id_floor.h"
#include "tests/support/cmocka_all.h"

enum { IDS = 20000 };

static uint64_t ids[IDS];

/* By looking at them all. */
static uint64_t lowest_from(size_t from, size_t count)
{
    uint64_t lowest = UINT64_MAX;

    for (size_t i = from; i < count; i++)
        lowest = ids[i] < lowest ? ids[i] : lowest;
    return lowest;
}

static void test_nothing_has_no_floor(void **state)
{
    struct id_floor floor = {.count = 0};

    (void)state;
    assert_int_equal(id_floor_from(&floor, 0), UINT64_MAX);
    id_floor_add(&floor, 5, 100);
    assert_int_equal(id_floor_from(&floor, 6), UINT64_MAX);
    assert_int_equal(id_floor_from(&floor, 5), 100);
    assert_int_equal(id_floor_from(&floor, 0), 100);
}

static void test_a_lower_id_that_comes_later_lowers_all_before(void **state)
{
    struct id_floor floor = {.count = 0};

    (void)state;
    id_floor_add(&floor, 1, 100);
    id_floor_add(&floor, 2, 300);
    id_floor_add(&floor, 3, 200);
    assert_int_equal(id_floor_from(&floor, 1), 100);
    assert_int_equal(id_floor_from(&floor, 2), 200);
    id_floor_add(&floor, 4, 50);
    assert_int_equal(id_floor_from(&floor, 1), 50);
    id_floor_add(&floor, 4, 60); /* at the same place */
    assert_int_equal(id_floor_from(&floor, 4), 50);
    assert_int_equal(id_floor_from(&floor, 5), UINT64_MAX);
}

/* Ids rise, but for some that are late. */
static void test_the_answer_is_never_too_high_and_hardly_too_low(void **state)
{
    struct id_floor floor = {.count = 0};

    (void)state;
    for (size_t i = 0; i < IDS; i++) {
        uint64_t random = stable_hash(i);

        ids[i] = 1000 + 10 * i - (random % 8 == 0 ? (random >> 8) % 500 : 0);
        id_floor_add(&floor, i, ids[i]);
        if (i % 97 != 0)
            continue;
        for (size_t back = 0; back <= i; back = back * 3 / 2 + 1) {
            uint64_t answer = id_floor_from(&floor, i - back);
            size_t before = i - back - back / 16;

            assert_true(answer <= lowest_from(i - back, i + 1));
            assert_true(answer >= lowest_from(i < back + back / 16 ? 0 : before, i + 1));
        }
    }
}

static void test_the_longest_sequence_finds_room(void **state)
{
    struct id_floor floor = {.count = 0};
    uint64_t sequence = 1;

    (void)state;
    for (int bits = 0; bits < 50; bits++) {
        for (uint64_t i = 0; i < 1000; i++)
            id_floor_add(&floor, sequence + i, sequence + i);
        sequence = sequence * 2 + 1000;
        assert_true(floor.count <= ID_FLOOR_STEPS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_has_no_floor),
        cmocka_unit_test(test_a_lower_id_that_comes_later_lowers_all_before),
        cmocka_unit_test(test_the_answer_is_never_too_high_and_hardly_too_low),
        cmocka_unit_test(test_the_longest_sequence_finds_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
