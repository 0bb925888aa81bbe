/* Which shards go to which master: few moves, even shares, nothing on masters that leave. */
#include <string.h>

#include "cli/shard_plan.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/draw.h"

enum { NODES_MAX = 16 };

static const bool nobody[NODES_MAX];

/* `counts` shards of weight `weight` on each node. */
static struct shard_plan plan_of(const uint32_t *counts, size_t nodes, double weight)
{
    struct shard_plan plan = {.nodes = nodes, .is_leaving = nobody};

    for (size_t node = 0; node < nodes; node++) {
        for (uint32_t i = 0; i < counts[node]; i++, plan.shards++) {
            plan.node[plan.shards] = node;
            plan.weight[plan.shards] = weight;
        }
    }
    return plan;
}

static uint32_t count_moves(const struct shard_plan *before, const struct shard_plan *after)
{
    uint32_t moves = 0;

    for (uint32_t shard = 0; shard < before->shards; shard++)
        moves += before->node[shard] != after->node[shard];
    return moves;
}

static void assert_counts(const struct shard_plan *plan, const uint32_t *counts)
{
    for (size_t node = 0; node < plan->nodes; node++)
        assert_int_equal(shard_plan_count(plan, node), counts[node]);
}

static void test_what_is_even_stays(void **state)
{
    struct shard_plan before = plan_of((const uint32_t[]){21, 21, 22}, 3, 1), after = before;

    (void)state;
    shard_plan_make(&after);
    assert_memory_equal(&before, &after, sizeof(before));
}

static void test_new_master_gets_its_share_and_nothing_else_moves(void **state)
{
    struct shard_plan before = plan_of((const uint32_t[]){21, 21, 22, 0}, 4, 1), after = before;

    (void)state;
    shard_plan_make(&after);
    assert_counts(&after, (const uint32_t[]){16, 16, 16, 16});
    assert_int_equal(count_moves(&before, &after), 16);
}

static void test_shards_without_load_are_evened_out_by_number(void **state)
{
    struct shard_plan before = plan_of((const uint32_t[]){21, 21, 22, 0}, 4, 0), after = before;

    (void)state;
    shard_plan_make(&after);
    assert_counts(&after, (const uint32_t[]){16, 16, 16, 16});
    assert_int_equal(count_moves(&before, &after), 16);
}

static void test_busy_shard_stays_and_idle_ones_go(void **state)
{
    struct shard_plan before = plan_of((const uint32_t[]){8, 0}, 2, 0), after;

    (void)state;
    before.weight[5] = 1000;
    after = before;
    shard_plan_make(&after);
    assert_int_equal(after.node[5], 0);
    assert_counts(&after, (const uint32_t[]){4, 4});
}

static void test_load_counts_not_number(void **state)
{
    struct shard_plan before = plan_of((const uint32_t[]){2, 6}, 2, 10), after;

    (void)state;
    before.weight[0] = before.weight[1] = 30;
    after = before;
    shard_plan_make(&after);
    assert_int_equal(count_moves(&before, &after), 0);
}

static void test_leaving_master_keeps_nothing_and_gets_nothing(void **state)
{
    static const bool leaving[NODES_MAX] = {false, true};
    struct shard_plan plan = plan_of((const uint32_t[]){16, 16, 16, 16}, 4, 1);

    (void)state;
    plan.is_leaving = leaving;
    shard_plan_make(&plan);
    assert_int_equal(shard_plan_count(&plan, 1), 0);
    for (size_t node = 0; node < plan.nodes; node++) {
        if (node != 1)
            assert_in_range(shard_plan_count(&plan, node), 21, 22);
    }
}

static void test_whatever_the_loads_nobody_has_much_more_than_the_share(void **state)
{
    (void)state;
    draw_begin();
    for (int round = 0; round < 300; round++) {
        struct shard_plan plan = {.shards = SL_SHARDS_MAX, .is_leaving = nobody};
        double sum = 0, heaviest = 0, share;

        plan.nodes = 1 + draw(NODES_MAX);
        for (uint32_t shard = 0; shard < plan.shards; shard++) {
            plan.node[shard] = draw((uint32_t)plan.nodes);
            plan.weight[shard] = (double)draw(1000);
            sum += plan.weight[shard];
            if (plan.weight[shard] > heaviest)
                heaviest = plan.weight[shard];
        }
        share = sum / (double)plan.nodes;
        shard_plan_make(&plan);
        for (size_t node = 0; node < plan.nodes; node++)
            assert_true(shard_plan_weight(&plan, node) <= share * 1.05 + heaviest);
        for (uint32_t shard = 0; shard < plan.shards; shard++)
            assert_true(plan.node[shard] < plan.nodes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_even_stays),
        cmocka_unit_test(test_new_master_gets_its_share_and_nothing_else_moves),
        cmocka_unit_test(test_shards_without_load_are_evened_out_by_number),
        cmocka_unit_test(test_busy_shard_stays_and_idle_ones_go),
        cmocka_unit_test(test_load_counts_not_number),
        cmocka_unit_test(test_leaving_master_keeps_nothing_and_gets_nothing),
        cmocka_unit_test(test_whatever_the_loads_nobody_has_much_more_than_the_share),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
