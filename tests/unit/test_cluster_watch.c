/* Which node has which shard, asked of nodes that answer, lie, disconnect, or belong to another
 * cluster. */
#include <signal.h>
#include <string.h>

#include "gateway/redis/cluster_watch.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/fake_node.h"
#include "tests/support/test_loop.h"

#define DATABASE "0123456789abcdef0123456789abcdef"

static struct fake_node nodes[3];
static struct test_loop test_loop;
static struct cluster_watch *watch;
static struct sl_cluster_map map;
static unsigned changes;

static void on_map(void *context, const struct sl_cluster_map *now)
{
    assert_ptr_equal(context, &map);
    map = *now;
    changes++;
}

static int begin(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < 3; i++)
        fake_node_start(&nodes[i]);
    test_loop_init(&test_loop, NULL);
    watch = NULL;
    changes = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    cluster_watch_free(watch);
    test_loop_done(&test_loop);
    for (size_t i = 0; i < 3; i++)
        fake_node_stop(&nodes[i]);
    return 0;
}

static void start(size_t seeds)
{
    struct sl_redis_address address = {.seed_count = (uint32_t)seeds};

    for (size_t i = 0; i < seeds; i++)
        address.seeds[i] = nodes[i].endpoint;
    watch = cluster_watch_new(&test_loop.uv, &address, on_map, &map);
    assert_non_null(watch);
}

static void assert_master(const struct fake_node *node)
{
    assert_true(sl_redis_endpoint_equals(&map.masters[0], &node->endpoint));
    assert_true(sl_redis_endpoint_equals(&map.masters[63], &node->endpoint));
}

/* Every node answers the HELLO. */
static void greet(size_t node)
{
    fake_node_answers(&nodes[node], "CLIENT", "+OK\r\n");
}

static void test_first_map_is_told(void **state)
{
    (void)state;
    greet(0);
    fake_node_names(&nodes[0], &nodes[1]);
    start(1);
    RUN_UNTIL(&test_loop, changes == 1);
    assert_master(&nodes[1]);
}

static void test_seed_that_hangs_up_is_left_for_another(void **state)
{
    (void)state;
    greet(2);
    fake_node_names(&nodes[2], &nodes[2]);
    start(3);
    RUN_UNTIL(&test_loop, changes == 1);
    assert_master(&nodes[2]);
}

static void test_doubt_brings_the_next_map_at_once(void **state)
{
    (void)state;
    greet(0);
    fake_node_names(&nodes[0], &nodes[0]);
    fake_node_names(&nodes[0], &nodes[0]); /* no change, no callback */
    fake_node_names(&nodes[0], &nodes[1]);
    start(1);
    RUN_UNTIL(&test_loop, changes == 1);
    cluster_watch_doubt(watch);
    RUN_UNTIL(&test_loop, changes == 2);
    assert_master(&nodes[1]);
}

static void test_shard_that_is_nobodys_to_one_node_is_asked_of_another(void **state)
{
    char seen[4096];

    (void)state;
    greet(0);
    greet(1);
    fake_node_names_some(&nodes[0], &nodes[1]);
    fake_node_names(&nodes[1], &nodes[2]);
    start(1);
    RUN_UNTIL(&test_loop, changes == 1);
    cluster_watch_doubt(watch);
    RUN_UNTIL(&test_loop, changes == 2);
    assert_master(&nodes[2]);
    fake_node_seen(&nodes[0], seen, sizeof(seen));
    assert_string_equal(seen, "CLIENT CLUSTER ");
}

static void test_shard_that_is_nobodys_to_one_node_stays_where_it_was(void **state)
{
    (void)state;
    greet(0);
    greet(1);
    fake_node_names(&nodes[0], &nodes[1]);
    fake_node_names_some(&nodes[0], &nodes[1]);
    fake_node_names(&nodes[1], &nodes[2]);
    start(1);
    RUN_UNTIL(&test_loop, changes == 1);
    cluster_watch_doubt(watch);
    RUN_UNTIL(&test_loop, sl_redis_endpoint_equals(&map.masters[0], &nodes[2].endpoint));
    assert_int_equal(changes, 2); /* there was none without it in between */
}

static void test_node_with_another_database_is_not_believed(void **state)
{
    const struct sl_meta meta = {.database_id = DATABASE, .shards = 64};

    (void)state;
    for (size_t i = 0; i < 3; i++)
        greet(i);
    fake_node_names(&nodes[0], &nodes[0]);
    fake_node_answers(&nodes[0], "HGET", "$32\r\nffffffffffffffffffffffffffffffff\r\n");
    fake_node_names(&nodes[1],
                    &nodes[2]); /* it says so itself: the word of a replica is not enough */
    fake_node_names(&nodes[2], &nodes[2]);
    fake_node_answers(&nodes[2], "HGET", "$32\r\n" DATABASE "\r\n");
    start(2);
    cluster_watch_expect(watch, &meta);
    RUN_UNTIL(&test_loop, changes == 1);
    assert_master(&nodes[2]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_first_map_is_told),
        TEST(test_seed_that_hangs_up_is_left_for_another),
        TEST(test_doubt_brings_the_next_map_at_once),
        TEST(test_shard_that_is_nobodys_to_one_node_is_asked_of_another),
        TEST(test_shard_that_is_nobodys_to_one_node_stays_where_it_was),
        TEST(test_node_with_another_database_is_not_believed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
