/* A link, and nodes that redirect it, are not ready, or belong to another cluster. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "src/call/reply.h"
#include "src/call/write.h"
#include "src/database/event_log.h"
#include "src/redis/redis_link.h"
#include "src/social/users.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/fake_node.h"

#define DATABASE "0123456789abcdef0123456789abcdef"
#define WRITTEN  "*2\r\n:0\r\n$1\r\n7\r\n"

static struct fake_node nodes[3];
static struct sl_redis_link *client;
static struct failure failure;
static const struct sl_meta meta = {.database_id = DATABASE, .shards = 1, .is_clustered = true};

static int begin(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < 3; i++)
        fake_node_start(&nodes[i]);
    client = NULL;
    return 0;
}

static int end(void **state)
{
    (void)state;
    sl_redis_link_close(client);
    for (size_t i = 0; i < 3; i++)
        fake_node_stop(&nodes[i]);
    return 0;
}

static int open_link_as(const char *password, uint32_t retry_ms, size_t seeds)
{
    const struct sl_redis_link_options options = {
        .connect_ms = 5000, .answer_ms = 5000, .retry_ms = retry_ms};
    struct sl_redis_address address = {.seed_count = (uint32_t)seeds};

    for (size_t i = 0; i < seeds; i++)
        address.seeds[i] = nodes[i].endpoint;
    snprintf(address.login.password, sizeof(address.login.password), "%s", password);
    return sl_redis_link_open(&address, &options, &client, &failure);
}

static int open_link(uint32_t retry_ms, size_t seeds)
{
    return open_link_as("", retry_ms, seeds);
}

/* Creates a user, which is a script. Without a request id it is repeated only if it certainly was
 * not executed. */
static int create(void)
{
    struct sl_call call = SL_CALL_INIT;
    struct sl_written written;
    redisReply *reply = NULL;
    int r;

    assert_int_equal(
        sl_user_create_call(&call, &meta, SL_SLICE_NONE, SL_SLICE("ada"), SL_SLICE_NONE, NULL), 0);
    r = sl_redis_link_run(client, &call, &reply, &failure);
    if (r == 0)
        r = sl_write_reply(reply, &written, &failure);
    freeReplyObject(reply);
    sl_call_done(&call);
    return r;
}

/* A plain command: the end of the log. */
static int read_end(void)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    uint64_t id = 0;
    int r;

    assert_int_equal(sl_event_log_end_call(&call, 0, NULL), 0);
    r = sl_redis_link_run(client, &call, &reply, &failure);
    if (r == 0)
        r = sl_event_log_end_reply(reply, 0, &id, &failure);
    freeReplyObject(reply);
    sl_call_done(&call);
    return r;
}

static void assert_seen(size_t node, const char *expected)
{
    char seen[4096];

    fake_node_seen(&nodes[node], seen, sizeof(seen));
    assert_string_equal(seen, expected);
}

/* How often the node was sent this since the last call. */
static unsigned count_seen_at(size_t node, const char *command)
{
    char seen[4096];
    unsigned count = 0;

    fake_node_seen(&nodes[node], seen, sizeof(seen));
    for (const char *at = seen; (at = strstr(at, command)); at++)
        count++;
    return count;
}

static unsigned count_seen(const char *command)
{
    return count_seen_at(0, command);
}

#define PLACE(i) nodes[i].endpoint.host, (unsigned)nodes[i].endpoint.port

static void test_calls_go_to_the_master_of_their_shard(void **state)
{
    (void)state;
    fake_node_names(&nodes[0], &nodes[1]);
    fake_node_answers(&nodes[1], "EVALSHA", WRITTEN);
    assert_int_equal(open_link(0, 1), 0);
    assert_int_equal(create(), 0);
    assert_int_equal(create(), 0);
    assert_seen(0, "CLUSTER ");
    assert_seen(1, "EVALSHA EVALSHA ");
}

static void test_shard_that_has_moved_is_followed(void **state)
{
    (void)state;
    fake_node_names(&nodes[0], &nodes[0]);
    fake_node_names(&nodes[0], &nodes[1]);
    fake_node_answers(&nodes[0], "EVALSHA", "-MOVED 13907 %s:%u\r\n", PLACE(1));
    fake_node_answers(&nodes[1], "EVALSHA", WRITTEN);
    fake_node_names(&nodes[1], &nodes[1]);
    assert_int_equal(open_link(0, 1), 0);
    assert_int_equal(create(), 0);
    assert_int_equal(create(), 0);
    assert_seen(0, "CLUSTER EVALSHA ");
}

static void test_shard_that_nobody_has_is_not_looked_for_for_ever(void **state)
{
    (void)state;
    fake_node_names(&nodes[0], &nodes[0]);
    fake_node_names(&nodes[1], &nodes[1]);
    fake_node_answers(&nodes[0], "EVALSHA", "-MOVED 13907 %s:%u\r\n", PLACE(1));
    fake_node_answers(&nodes[1], "EVALSHA", "-MOVED 13907 %s:%u\r\n", PLACE(0));
    assert_int_equal(open_link(0, 1), 0);
    assert_int_equal(create(), -EREMOTE);
    assert_seen(0, "CLUSTER EVALSHA EVALSHA EVALSHA ");
    assert_seen(1, "EVALSHA EVALSHA EVALSHA ");
}

static void test_redirection_to_another_slot_or_to_nowhere_is_not_followed(void **state)
{
    (void)state;
    fake_node_names(&nodes[0], &nodes[0]);
    fake_node_answers(&nodes[0], "EVALSHA", "-MOVED 13906 %s:%u\r\n", PLACE(1));
    fake_node_answers(&nodes[0], "EVALSHA", "-MOVED 13907 ?:%u\r\n",
                      (unsigned)nodes[1].endpoint.port);
    assert_int_equal(open_link(0, 1), 0);
    assert_int_equal(create(), -EREMOTE);
    assert_int_equal(create(), -EREMOTE);
    assert_seen(1, "");
}

/* The node that takes over the slot would run the script on the keys that it already has. */
static void test_no_script_is_sent_where_a_slot_is_moved_to(void **state)
{
    (void)state;
    fake_node_names(&nodes[0], &nodes[0]);
    fake_node_answers(&nodes[0], "EVALSHA", "-ASK 13907 %s:%u\r\n", PLACE(1));
    fake_node_answers(&nodes[0], "EVALSHA", "-ASK 13907 %s:%u\r\n", PLACE(1));
    fake_node_answers(&nodes[0], "EVALSHA", WRITTEN);
    fake_node_answers(&nodes[1], "ASKING", "+OK\r\n");
    fake_node_answers(&nodes[1], "EVALSHA", WRITTEN);
    assert_int_equal(open_link(5000, 1), 0);
    assert_int_equal(create(), 0);
    assert_seen(1, "");
}

static void test_plain_command_asks_where_a_slot_is_moved_to(void **state)
{
    (void)state;
    fake_node_names(&nodes[0], &nodes[0]);
    fake_node_answers(&nodes[0], "XREVRANGE", "-ASK 13907 %s:%u\r\n", PLACE(1));
    fake_node_answers(&nodes[0], "XREVRANGE", "*0\r\n");
    fake_node_answers(&nodes[1], "ASKING", "+OK\r\n");
    fake_node_answers(&nodes[1], "XREVRANGE", "-TRYAGAIN not all keys are here\r\n");
    fake_node_answers(&nodes[1], "XREVRANGE", "*0\r\n");
    assert_int_equal(open_link(5000, 1), 0);
    assert_int_equal(read_end(), 0);
    assert_seen(1, "ASKING XREVRANGE ");
    fake_node_answers(&nodes[0], "XREVRANGE", "-ASK 13907 %s:%u\r\n", PLACE(1));
    assert_int_equal(read_end(), 0); /* the slot stays where it was */
    assert_int_equal(read_end(), 0);
    assert_seen(1, "ASKING XREVRANGE ");
}

static void test_what_cannot_be_done_yet_is_asked_again(void **state)
{
    static const char *const not_yet[] = {
        "-MOVING the shard\r\n",
        "-TRYAGAIN\r\n",
        "-CLUSTERDOWN Hash slot not served\r\n",
        "-MASTERDOWN Link with\r\n",
        "-LOADING\r\n",
        "-READONLY You can't write\r\n",
        "-ERR Script attempted to access a non local key in a cluster node\r\n",
    };

    (void)state;
    fake_node_names(&nodes[0], &nodes[0]);
    for (size_t i = 0; i < sizeof(not_yet) / sizeof(not_yet[0]); i++) {
        fake_node_answers(&nodes[0], "EVALSHA", "%s", not_yet[i]);
        fake_node_answers(&nodes[0], "EVALSHA", WRITTEN);
    }
    assert_int_equal(open_link(20000, 1), 0);
    for (size_t i = 0; i < sizeof(not_yet) / sizeof(not_yet[0]); i++)
        assert_int_equal(create(), 0);
    assert_int_equal(count_seen("EVALSHA "), 2 * sizeof(not_yet) / sizeof(not_yet[0]));
}

static void test_map_is_asked_for_again_but_not_all_the_time(void **state)
{
    (void)state;
    fake_node_names(&nodes[0], &nodes[0]);
    fake_node_answers(&nodes[0], "EVALSHA", "-CLUSTERDOWN\r\n");
    assert_int_equal(open_link(300, 1), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(create(), -EAGAIN);
    /* at once, and then every 100 to 200 ms for some 700 ms */
    assert_in_range(count_seen("CLUSTER "), 2, 10);
}

static void test_seed_that_answers_is_found(void **state)
{
    (void)state;
    fake_node_names(&nodes[2], &nodes[2]);
    fake_node_answers(&nodes[2], "EVALSHA", WRITTEN);
    assert_int_equal(open_link(0, 3), 0); /* the first two disconnect */
    assert_int_equal(create(), 0);
    assert_seen(0, "CLUSTER ");
    assert_seen(1, "CLUSTER ");
}

static void test_master_that_is_gone_is_looked_for_at_the_seeds(void **state)
{
    (void)state;
    fake_node_names(&nodes[0], &nodes[1]); /* which disconnects */
    fake_node_names(&nodes[0], &nodes[2]);
    fake_node_answers(&nodes[2], "XREVRANGE", "*0\r\n");
    assert_int_equal(open_link(5000, 1), 0);
    assert_int_equal(create(), -EIO); /* nobody knows whether it was executed */
    assert_int_equal(read_end(), 0);
    assert_seen(0, "CLUSTER CLUSTER ");
    assert_seen(2, "XREVRANGE ");
}

static void test_shard_that_is_nobodys_to_one_node_is_known_to_another(void **state)
{
    (void)state;
    fake_node_names_some(&nodes[0], &nodes[1]);
    fake_node_names(&nodes[1], &nodes[2]);
    fake_node_answers(&nodes[2], "EVALSHA", WRITTEN);
    assert_int_equal(open_link(0, 1), 0);
    assert_int_equal(create(), 0);
    assert_int_equal(create(), 0);
    assert_seen(0, "CLUSTER ");
    assert_seen(1, "CLUSTER ");
    assert_seen(2, "EVALSHA EVALSHA ");
}

static void test_shard_that_is_nobodys_to_all_nodes_is_asked_of_each_once(void **state)
{
    (void)state;
    fake_node_names_some(&nodes[0], &nodes[1]);
    fake_node_names_some(&nodes[1], &nodes[1]);
    fake_node_names_some(&nodes[2], &nodes[1]);
    assert_int_equal(open_link(0, 3), 0);
    assert_int_equal(create(), -EIO);
    assert_string_equal(failure.text, "nobody in the cluster has shard 0");
    for (size_t i = 0; i < 3; i++)
        assert_seen(i, "CLUSTER ");
}

static void test_redis_that_is_no_cluster_is_refused(void **state)
{
    (void)state;
    fake_node_answers(&nodes[0], "CLUSTER", "-ERR This instance has cluster support disabled\r\n");
    assert_int_equal(open_link(5000, 2), -ENOTSUP);
    assert_non_null(strstr(failure.text, "redis://"));
    assert_seen(1, "");
}

static void test_node_with_another_database_is_sent_nothing(void **state)
{
    (void)state;
    fake_node_names(&nodes[0], &nodes[1]);
    fake_node_answers(&nodes[1], "HGET", "$32\r\nffffffffffffffffffffffffffffffff\r\n");
    fake_node_answers(&nodes[1], "EVALSHA", WRITTEN);
    assert_int_equal(open_link(100, 1), 0);
    sl_redis_link_expect(client, &meta);
    assert_int_equal(create(), -EIO);
    assert_non_null(strstr(failure.text, "another database"));
    fake_node_answers(&nodes[1], "HGET", "$32\r\n" DATABASE "\r\n");
    for (unsigned tries = 0; create() < 0; tries++)
        assert_true(tries < 100); /* each is tried for 100 ms, and the node again after a second */
}

static void test_link_survives_every_allocation_that_fails(void **state)
{
    int r = -ENOMEM;

    (void)state;
    fake_node_names(&nodes[0], &nodes[0]);
    for (uint64_t n = 0; r < 0; n++) {
        mem_fail_after(n);
        r = open_link(0, 1);
        mem_fail_never();
        assert_true(n < 100);
    }
}

/* How often a node may be tried within `elapsed_ms` if each pause is as short as possible: half of
 * 20, 40, 80 ms, and so on. */
static unsigned tries_allowed(uint64_t elapsed_ms)
{
    struct backoff backoff = {0};
    unsigned tries = 1;
    uint64_t at_ms = 0;

    while ((at_ms += backoff_next_ms(&backoff, 20, 1000) / 2) <= elapsed_ms)
        tries++;
    return tries;
}

/* Like a worker that looks at 64 shards, all nodes of which refuse it. */
static void test_a_node_that_refuses_is_left_alone_for_a_while_whatever_is_asked(void **state)
{
    struct sl_call call = SL_CALL_INIT;
    uint64_t began_ms = clock_monotonic_ms(), elapsed_ms = 0;
    unsigned tries = 0;

    (void)state;
    fake_node_names(&nodes[0], &nodes[1]);
    fake_node_answers(&nodes[0], "AUTH", "+OK\r\n");
    fake_node_answers(&nodes[1], "AUTH", "-WRONGPASS invalid username-password pair\r\n");
    assert_int_equal(open_link_as("secret", 0, 1), 0);
    assert_int_equal(sl_event_log_end_call(&call, 0, NULL), 0);
    while (tries < 5 && elapsed_ms < 60000) {
        redisReply *reply = NULL;

        failure.text[0] = '\0';
        assert_int_equal(sl_redis_link_try(client, &call, &reply, &failure), -EIO);
        assert_non_null(strstr(failure.text, "shard 0 is away: cannot connect to the node"));
        assert_non_null(strstr(failure.text, "WRONGPASS"));
        elapsed_ms = clock_monotonic_ms() - began_ms;
        tries += count_seen_at(1, "AUTH");
        assert_in_range(tries, 1, tries_allowed(elapsed_ms));
    }
    assert_int_equal(tries, 5); /* it keeps trying */
    sl_call_done(&call);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_calls_go_to_the_master_of_their_shard),
        TEST(test_a_node_that_refuses_is_left_alone_for_a_while_whatever_is_asked),
        TEST(test_shard_that_has_moved_is_followed),
        TEST(test_shard_that_nobody_has_is_not_looked_for_for_ever),
        TEST(test_redirection_to_another_slot_or_to_nowhere_is_not_followed),
        TEST(test_no_script_is_sent_where_a_slot_is_moved_to),
        TEST(test_plain_command_asks_where_a_slot_is_moved_to),
        TEST(test_what_cannot_be_done_yet_is_asked_again),
        TEST(test_map_is_asked_for_again_but_not_all_the_time),
        TEST(test_seed_that_answers_is_found),
        TEST(test_master_that_is_gone_is_looked_for_at_the_seeds),
        TEST(test_shard_that_is_nobodys_to_one_node_is_known_to_another),
        TEST(test_shard_that_is_nobodys_to_all_nodes_is_asked_of_each_once),
        TEST(test_redis_that_is_no_cluster_is_refused),
        TEST(test_node_with_another_database_is_sent_nothing),
        TEST(test_link_survives_every_allocation_that_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
