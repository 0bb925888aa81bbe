/* Commands in a cluster: each goes to the node that has its shard, and follows the shard when it
 * moves. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "gateway/redis/redis_commands.h"
#include "src/call/reply.h"
#include "src/database/event_log.h"
#include "src/social/users.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/fake_node.h"
#include "tests/support/test_loop.h"

#define WRITTEN "*2\r\n:0\r\n$1\r\n7\r\n"

struct told {
    unsigned count;
    int error;
    char why[FAILURE_TEXT_SIZE];
};

static struct fake_node nodes[3];
static struct test_loop test_loop;
static struct redis_commands *commands;
static unsigned doubts;

static void on_doubt(void *context)
{
    assert_ptr_equal(context, &doubts);
    doubts++;
}

static void on_reply(void *owner, const redisReply *reply, const char *why)
{
    struct told *told = owner;
    struct failure failure = {""};

    told->count++;
    told->error = sl_reply_check(reply, &failure);
    snprintf(told->why, sizeof(told->why), "%s", reply ? failure.text : why);
}

static int begin(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < 3; i++) {
        fake_node_start(&nodes[i]);
        fake_node_answers(&nodes[i], "CLIENT", "+OK\r\n");
    }
    test_loop_init(&test_loop, NULL);
    commands = NULL;
    doubts = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    redis_commands_free(commands);
    test_loop_done(&test_loop);
    for (size_t i = 0; i < 3; i++)
        fake_node_stop(&nodes[i]);
    return 0;
}

static void start(uint32_t timeout_ms)
{
    struct sl_redis_address address = {.seed_count = 1};

    address.seeds[0] = nodes[0].endpoint;
    commands = redis_commands_new(&test_loop.uv, &address, "test", timeout_ms);
    assert_non_null(commands);
    redis_commands_set_doubt(commands, on_doubt, &doubts);
}

static void set_master(const struct fake_node *node)
{
    struct sl_cluster_map map = {0};

    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++)
        map.masters[shard] = node->endpoint;
    redis_commands_set_map(commands, &map);
}

/* Runs a script, which may be repeated only if it was not executed. */
static void run_write(struct told *told)
{
    const struct sl_meta meta = {.shards = 1};
    struct sl_call call = SL_CALL_INIT;

    *told = (struct told){.count = 0};
    assert_int_equal(
        sl_user_create_call(&call, &meta, SL_SLICE_NONE, SL_SLICE("ada"), SL_SLICE_NONE, NULL), 0);
    assert_int_equal(redis_commands_run_take(commands, &call, on_reply, told), 0);
}

/* A plain read. */
static void run_read(struct told *told)
{
    struct sl_call call = SL_CALL_INIT;

    *told = (struct told){.count = 0};
    assert_int_equal(sl_event_log_end_call(&call, 0, NULL), 0);
    assert_int_equal(redis_commands_run_take(commands, &call, on_reply, told), 0);
}

static void assert_seen(size_t node, const char *expected)
{
    char seen[4096];

    fake_node_seen(&nodes[node], seen, sizeof(seen));
    assert_string_equal(seen, expected);
}

static void test_commands_wait_until_it_is_known_where_to(void **state)
{
    struct told told;

    (void)state;
    fake_node_answers(&nodes[1], "EVALSHA", WRITTEN);
    start(20000);
    run_write(&told);
    assert_int_equal(doubts, 1);
    set_master(&nodes[1]);
    RUN_UNTIL(&test_loop, told.count == 1);
    assert_int_equal(told.error, 0);
    assert_seen(0, "");
    assert_seen(1, "CLIENT EVALSHA ");
}

static void test_command_without_a_place_ends_in_time(void **state)
{
    struct told told;

    (void)state;
    start(50);
    run_write(&told);
    RUN_UNTIL(&test_loop, told.count == 1);
    assert_int_equal(told.error, -EPIPE);
    assert_non_null(strstr(told.why, "no node"));
}

static void test_shard_that_has_moved_is_followed(void **state)
{
    struct told told;

    (void)state;
    fake_node_answers(&nodes[0], "EVALSHA", "-MOVED 13907 127.0.0.1:%u\r\n",
                      (unsigned)nodes[1].endpoint.port);
    fake_node_answers(&nodes[1], "EVALSHA", WRITTEN);
    start(20000);
    set_master(&nodes[0]);
    run_write(&told);
    RUN_UNTIL(&test_loop, told.count == 1);
    assert_int_equal(told.error, 0);
    run_write(&told);
    RUN_UNTIL(&test_loop, told.count == 1);
    assert_seen(0, "CLIENT EVALSHA ");
    assert_seen(1, "CLIENT EVALSHA EVALSHA ");
    assert_true(doubts > 0);
}

static void test_nodes_that_name_each_other_are_not_followed_for_ever(void **state)
{
    struct told told;

    (void)state;
    for (size_t i = 0; i < 2; i++)
        fake_node_answers(&nodes[i], "EVALSHA", "-MOVED 13907 127.0.0.1:%u\r\n",
                          (unsigned)nodes[1 - i].endpoint.port);
    start(300);
    set_master(&nodes[0]);
    run_write(&told);
    RUN_UNTIL(&test_loop, told.count == 1);
    assert_int_equal(told.error, -EREMOTE);
}

static void test_shard_that_is_being_moved_is_waited_for(void **state)
{
    struct told told;

    (void)state;
    fake_node_answers(&nodes[0], "EVALSHA", "-ASK 13907 127.0.0.1:%u\r\n",
                      (unsigned)nodes[1].endpoint.port);
    fake_node_answers(&nodes[0], "EVALSHA", "-MOVING the shard\r\n");
    fake_node_answers(&nodes[0], "EVALSHA", WRITTEN);
    start(20000);
    set_master(&nodes[0]);
    run_write(&told);
    RUN_UNTIL(&test_loop, told.count == 1);
    assert_int_equal(told.error, 0);
    assert_seen(0, "CLIENT EVALSHA EVALSHA EVALSHA ");
    assert_seen(1, ""); /* in particular no ASKING */
}

static void test_what_waits_for_a_dead_node_goes_to_the_next(void **state)
{
    struct told read, write;

    (void)state;
    fake_node_answers(&nodes[2], "XREVRANGE", "*0\r\n");
    fake_node_answers(&nodes[2], "EVALSHA", WRITTEN);
    start(20000);
    set_master(&nodes[1]); /* it closes the connection when it gets a command */
    run_read(&read);
    run_write(&write);
    RUN_UNTIL(&test_loop, write.count == 1);
    assert_int_equal(write.error, -EPIPE); /* it may have been executed */
    assert_int_equal(read.count, 0);
    assert_true(doubts > 0);
    set_master(&nodes[2]);
    RUN_UNTIL(&test_loop, read.count == 1);
    assert_int_equal(read.error, 0);
    assert_seen(2, "CLIENT XREVRANGE ");
}

static void test_nodes_are_told_by_their_shards(void **state)
{
    struct sl_cluster_map map = {0};
    uint64_t found[SL_SHARDS_MAX];

    (void)state;
    start(20000);
    assert_int_equal(redis_commands_nodes(commands, UINT64_MAX, found), 0);
    map.masters[0] = map.masters[2] = nodes[0].endpoint;
    map.masters[63] = nodes[1].endpoint;
    redis_commands_set_map(commands, &map);
    assert_int_equal(redis_commands_nodes(commands, UINT64_MAX, found), 2);
    assert_true(found[0] == 5 && found[1] == UINT64_C(1) << 63);
    assert_int_equal(redis_commands_nodes(commands, 6, found), 1);
    assert_true(found[0] == 4);
    assert_int_equal(redis_commands_reached(commands), 0);
}

static void read_shard(uint32_t shard, struct told *told)
{
    struct sl_call call = SL_CALL_INIT;

    *told = (struct told){.count = 0};
    assert_int_equal(sl_event_log_end_call(&call, shard, NULL), 0);
    assert_int_equal(redis_commands_run_take(commands, &call, on_reply, told), 0);
}

static void test_a_node_that_hangs_is_not_one_that_is_reached(void **state)
{
    struct sl_cluster_map map = {0};
    struct told told, other;

    (void)state;
    start(20000);
    map.masters[0] = nodes[0].endpoint;
    map.masters[1] = nodes[1].endpoint;
    redis_commands_set_map(commands, &map);
    fake_node_answers(&nodes[0], "XREVRANGE", "*0\r\n");
    fake_node_answers(&nodes[0], "XREVRANGE", "%s", "");
    fake_node_answers(&nodes[1], "XREVRANGE", "*0\r\n");
    read_shard(0, &told);
    read_shard(1, &other);
    RUN_UNTIL(&test_loop, told.count == 1 && other.count == 1);
    assert_int_equal(redis_commands_reached(commands), 0);
    read_shard(0, &told);
    assert_int_equal(redis_commands_reached(commands), 1);
    uv_sleep(2);
    read_shard(1, &other);
    RUN_UNTIL(&test_loop, other.count == 1);
    read_shard(1, &other); /* both owe an answer */
    assert_int_equal(redis_commands_reached(commands), 1);
    assert_int_equal(told.count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_commands_wait_until_it_is_known_where_to),
        TEST(test_a_node_that_hangs_is_not_one_that_is_reached),
        TEST(test_command_without_a_place_ends_in_time),
        TEST(test_shard_that_has_moved_is_followed),
        TEST(test_nodes_that_name_each_other_are_not_followed_for_ever),
        TEST(test_shard_that_is_being_moved_is_waited_for),
        TEST(test_what_waits_for_a_dead_node_goes_to_the_next),
        TEST(test_nodes_are_told_by_their_shards),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
