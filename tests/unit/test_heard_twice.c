/* A message that arrives by SPUBLISH and by PUBLISH is one event. */
#include <string.h>

#include <stdio.h>

#include "gateway/intake/heard_twice.h"
#include "tests/support/cmocka_all.h"

enum { SHARDED = 0, AT_A_NODE = 1, AT_THE_NEXT_NODE = 2 }; /* ways */

static struct heard_twice twice;

static int begin(void **state)
{
    (void)state;
    memset(&twice, 0, sizeof(twice));
    heard_twice_init(&twice);
    return 0;
}

static bool take(const char *body, uint32_t shard, uint64_t at_ms, uint32_t way)
{
    const struct live_message message = {
        .shard = shard, .received_us = 1000 * (1000 + at_ms), .body = sl_slice_str(body)};

    return heard_twice_take(&twice, &message, way);
}

static void test_the_second_of_two_ways_is_known(void **state)
{
    (void)state;
    assert_false(take("a", 0, 0, SHARDED));
    assert_true(take("a", 0, 0, AT_A_NODE));
    assert_false(take("b", 0, 0, AT_A_NODE));
    assert_true(take("b", 0, HEARD_TWICE_MS - 1, SHARDED));
}

static void test_each_answers_for_one_only(void **state)
{
    (void)state;
    assert_false(take("a", 0, 0, SHARDED));
    assert_false(take("a", 0, 0, SHARDED));
    assert_true(take("a", 0, 0, AT_A_NODE));
    assert_true(take("a", 0, 0, AT_A_NODE));
    assert_false(take("a", 0, 0, AT_A_NODE));
}

/* The node to which it subscribes after the first one delivers late. */
static void test_each_node_is_a_way_of_its_own(void **state)
{
    (void)state;
    assert_false(take("a", 0, 0, AT_A_NODE));
    assert_true(take("a", 0, 0, SHARDED));
    assert_true(take("a", 0, 100, AT_THE_NEXT_NODE));
    assert_false(take("a", 0, 100, AT_THE_NEXT_NODE));
    assert_false(take("b", 0, 100, AT_THE_NEXT_NODE));
    assert_false(take("b", 0, 100, AT_THE_NEXT_NODE));
    assert_true(take("b", 0, 200, AT_THE_NEXT_NODE + 29));
    assert_true(take("b", 0, 200, AT_THE_NEXT_NODE + 30));
}

static void test_other_bytes_and_other_shards_are_other_events(void **state)
{
    (void)state;
    assert_false(take("a", 0, 0, SHARDED));
    assert_false(take("b", 0, 0, AT_A_NODE));
    assert_false(take("a", 1, 0, AT_A_NODE));
}

static void test_the_same_may_be_said_again_later(void **state)
{
    (void)state;
    assert_false(take("a", 0, 0, SHARDED));
    assert_false(take("a", 0, HEARD_TWICE_MS, AT_A_NODE));
}

static void test_a_limited_number_is_remembered(void **state)
{
    char body[16];

    (void)state;
    for (unsigned n = 0; n <= HEARD_TWICE_COUNT; n++) {
        snprintf(body, sizeof(body), "%u", n);
        assert_false(take(body, 0, 0, SHARDED));
    }
    assert_false(take("0", 0, 0, AT_A_NODE)); /* the last one is kept in its place */
    assert_true(take("2", 0, 0, AT_A_NODE));
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_the_second_of_two_ways_is_known),
        TEST(test_each_answers_for_one_only),
        TEST(test_each_node_is_a_way_of_its_own),
        TEST(test_other_bytes_and_other_shards_are_other_events),
        TEST(test_the_same_may_be_said_again_later),
        TEST(test_a_limited_number_is_remembered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
