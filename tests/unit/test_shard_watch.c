/* Periodic questions about every shard to two nodes of a cluster: one of them may be unavailable,
 * and the shards of the other are reported nevertheless. */
#include <signal.h>

#include "gateway/redis/shard_watch.h"
#include "src/call/call_build.h"
#include "src/call/reply.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/fake_node.h"
#include "tests/support/test_loop.h"

enum { SHARDS = 6 };

static struct fake_node nodes[2];
static struct test_loop test_loop;
static struct redis_commands *commands;
static struct shard_watch *watch;
static struct told {
    unsigned rounds, ends, asked[SHARDS];
} * told; /* passed to the watch */

static void on_begin(void *context)
{
    ((struct told *)context)->rounds++;
}

static int build(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                 struct failure *reterr)
{
    assert_int_equal(meta->shards, SHARDS);
    sl_call_begin(call, shard, false);
    sl_call_add_str(call, "ECHO");
    return sl_call_finish(call, reterr);
}

static int on_answer(void *context, uint32_t shard, const redisReply *reply)
{
    ((struct told *)context)->asked[shard]++;
    return sl_reply_check(reply, NULL);
}

static void on_end(void *context)
{
    ((struct told *)context)->ends++;
}

static const struct shard_question question = {
    .every_ms = 10, .begin = on_begin, .build = build, .take = on_answer, .end = on_end};

/* The first node has the even shards. */
static int begin(void **state)
{
    struct sl_redis_address address = {.seed_count = 1};
    struct sl_cluster_map map = {0};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        fake_node_start(&nodes[i]);
        fake_node_answers(&nodes[i], "CLIENT", "+OK\r\n");
    }
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        map.masters[shard] = nodes[shard % 2].endpoint;
    test_loop_init(&test_loop, NULL);
    address.seeds[0] = nodes[0].endpoint;
    commands = redis_commands_new(&test_loop.uv, &address, "test", 200);
    assert_non_null(commands);
    redis_commands_set_map(commands, &map);
    watch = shard_watch_new(&test_loop.uv, commands, &question, sizeof(struct told));
    assert_non_null(watch);
    told = shard_watch_context(watch);
    return 0;
}

static int end(void **state)
{
    (void)state;
    redis_commands_free(commands);
    shard_watch_free(watch);
    test_loop_done(&test_loop);
    for (size_t i = 0; i < 2; i++)
        fake_node_stop(&nodes[i]);
    return 0;
}

static void test_a_round_asks_each_shard_once(void **state)
{
    (void)state;
    fake_node_answers(&nodes[0], "ECHO", "+OK\r\n");
    fake_node_answers(&nodes[1], "ECHO", "+OK\r\n");
    shard_watch_begin(watch, SHARDS);
    RUN_UNTIL(&test_loop, told->ends == 3);
    assert_int_equal(told->rounds, 3);
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        assert_int_equal(told->asked[shard], 3);
}

static void test_a_node_that_is_away_hides_its_own_shards_only(void **state)
{
    (void)state;
    fake_node_answers(&nodes[1], "ECHO", "+OK\r\n");
    shard_watch_begin(watch, SHARDS);
    RUN_UNTIL(&test_loop, told->asked[1] >= 2 && told->asked[3] >= 2 && told->asked[5] >= 2);
    assert_true(told->asked[0] + told->asked[2] + told->asked[4] + told->ends == 0);
}

static void test_an_answer_that_is_none_ends_the_round_of_its_node(void **state)
{
    (void)state;
    fake_node_answers(&nodes[0], "ECHO", "-ERR no\r\n");
    fake_node_answers(&nodes[1], "ECHO", "+OK\r\n");
    shard_watch_begin(watch, SHARDS);
    RUN_UNTIL(&test_loop, told->rounds == 3);
    assert_int_equal(told->asked[0], 2);
    assert_int_equal(told->asked[1], 2);
    assert_int_equal(told->asked[5], 2);
    assert_int_equal(told->asked[2] + told->ends, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_round_asks_each_shard_once),
        TEST(test_a_node_that_is_away_hides_its_own_shards_only),
        TEST(test_an_answer_that_is_none_ends_the_round_of_its_node),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
