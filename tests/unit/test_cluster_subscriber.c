/* The subscriber on a Redis Cluster of one node that has all slots. */
#include <string.h>

#include "gateway/intake/message_rate.h"
#include "gateway/intake/subscriber.h"
#include "gateway/metrics/health.h"
#include "gateway/redis/redis_commands.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/test_loop.h"
#include "tests/support/redis_server.h"

enum { TIMEOUT_MS = 20000, REST_MS = 100 };

static struct test_loop test_loop;
static struct metrics_board *board;
static struct redis_server server;
static redisContext *publisher;
static char port[8], bus_port[8];
static const char *const options[] = {
    "--port", port, "--cluster-port", bus_port, "--cluster-enabled", "yes", NULL};

static struct {
    struct sl_redis_address address;
    struct sl_cluster_map map;
    struct redis_commands *commands;
    struct subscriber *subscriber;
    size_t log_ends, messages, turns, subscribed, lost, heard_again;
    uint64_t turn_ms[2]; /* when the last two turns ended */
} scene;

#define run_until(condition) RUN_UNTIL(&test_loop, condition)
#define run(...)             redis_server_run(publisher, __VA_ARGS__)

/* ---- callbacks ---- */

static int on_log_end(void *context, uint32_t shard, uint64_t id)
{
    (void)context;
    (void)shard;
    assert_int_equal(id, 0);
    scene.log_ends++;
    return 0;
}

static void on_message(void *context, const struct live_message *message)
{
    (void)context;
    (void)message;
    scene.messages++;
}

static void on_turn_end(void *context)
{
    (void)context;
    scene.turns++;
    scene.turn_ms[0] = scene.turn_ms[1];
    scene.turn_ms[1] = uv_now(&test_loop.uv);
}

static void on_subscribed(void *context, uint32_t shards)
{
    (void)context;
    assert_int_equal(shards, SL_SHARDS_MAX);
    scene.subscribed++;
}

static void on_lost(void *context, const char *reason)
{
    (void)context;
    (void)reason;
    scene.lost++;
}

static void on_database(void *context, const struct sl_meta *meta)
{
    (void)context;
    assert_true(meta->is_clustered);
    assert_int_equal(scene.log_ends, 0);
}

static void on_heard_again(void *context, uint32_t shard)
{
    (void)context;
    (void)shard;
    scene.heard_again++;
}

static const struct subscriber_callbacks callbacks = {
    .log_end = on_log_end,
    .message = on_message,
    .turn_end = on_turn_end,
    .subscribed = on_subscribed,
    .lost = on_lost,
    .heard_again = on_heard_again,
};

/* ---- the fixture ---- */

static int set_up(void **state)
{
    (void)state;
    memset(&scene, 0, sizeof(scene));
    snprintf(port, sizeof(port), "%u", redis_server_free_port());
    do
        snprintf(bus_port, sizeof(bus_port), "%u", redis_server_free_port());
    while (strcmp(bus_port, port) == 0);
    redis_server_init_with(&server, options);
    publisher = redis_server_connect(&server);
    run("CLUSTER ADDSLOTSRANGE 0 16383");
    test_loop_init(&test_loop, NULL);
    board = metrics_board_new(1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    subscriber_free(scene.subscriber);
    redis_commands_free(scene.commands);
    test_loop_done(&test_loop);
    metrics_board_free(board);
    redisFree(publisher);
    redis_server_done(&server);
    return 0;
}

/* Commands have no map, so requests of the subscriber wait. */
static void make_subscriber(uint32_t rest_ms)
{
    struct subscriber_settings settings = {
        .loop = &test_loop.uv,
        .address = &scene.address,
        .metrics = metrics_slot(board, 0),
        .ping_ms = TIMEOUT_MS,
        .timeout_ms = TIMEOUT_MS,
        .rest_ms = rest_ms,
        .news = {.database = on_database}, /* the map stays the same */
    };
    char url[64];

    snprintf(url, sizeof(url), "redis+cluster://127.0.0.1:%s", port);
    assert_int_equal(sl_redis_address_parse(sl_slice_str(url), &scene.address, NULL), 0);
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++)
        scene.map.masters[shard] = scene.address.seeds[0];
    scene.commands = settings.commands =
        redis_commands_new(&test_loop.uv, &scene.address, "test", TIMEOUT_MS);
    scene.subscriber = subscriber_new(&settings, &callbacks, &scene);
    assert_true(scene.commands && scene.subscriber);
    subscriber_set_map(scene.subscriber, &scene.map);
}

static void subscribe(uint32_t rest_ms)
{
    make_subscriber(rest_ms);
    redis_commands_set_map(scene.commands, &scene.map);
    run_until(scene.subscribed == 1);
    assert_int_equal(scene.log_ends, SL_SHARDS_MAX);
}

/* Publishes to one shard after the other, until all are received. */
static void publish_all(size_t count)
{
    size_t before = scene.messages;

    for (size_t n = 0; n < count; n++)
        redisAppendCommand(publisher, "SPUBLISH sluice:{%u}:live {}",
                           (unsigned)(n % SL_SHARDS_MAX));
    for (size_t n = 0; n < count; n++) {
        redisReply *reply = NULL;

        assert_int_equal(redisGetReply(publisher, (void **)&reply), REDIS_OK);
        assert_int_equal(reply->integer, 1);
        freeReplyObject(reply);
    }
    run_until(scene.messages == before + count);
}

static void test_all_shards_are_heard_on_one_connection(void **state)
{
    redisReply *reply;

    (void)state;
    subscribe(0);
    publish_all(2 * SL_SHARDS_MAX);
    reply = redisCommand(publisher, "CLIENT LIST TYPE PUBSUB");
    assert_non_null(strstr(reply->str, "name=sluiced"));
    assert_null(strchr(strchr(reply->str, '\n') + 1, '\n'));
    freeReplyObject(reply);
    assert_int_equal(subscriber_heard(scene.subscriber), UINT64_MAX);
    assert_int_equal(scene.lost + scene.heard_again, 0);
}

static uint64_t metric(enum metric metric)
{
    return metrics_sum(board, metric);
}

static void publish(const char *command, uint32_t shard, const char *payload)
{
    redisReply *reply = redisCommand(publisher, "%s sluice:{%u}:live %s", command, shard, payload);

    assert_int_equal(reply->integer, 1);
    freeReplyObject(reply);
}

static void test_what_others_publish_is_heard_on_the_same_connection(void **state)
{
    (void)state;
    subscribe(0);
    assert_int_equal(metric(METRIC_PUBLISH_HEARD), 1);
    publish("PUBLISH", 0, "{\"n\":1}");
    publish("PUBLISH", SL_SHARDS_MAX - 1, "{\"n\":2}");
    publish("PUBLISH", 0, "{\"n\":1}"); /* two events with the same text */
    run_until(scene.messages == 3);
    publish("PUBLISH", 7, "no event");
    run_until(metric(METRIC_EVENTS_BAD_HEADER) == 1);
    assert_int_equal(scene.messages, 3);
}

static void test_what_is_published_in_both_ways_is_heard_once(void **state)
{
    (void)state;
    subscribe(0);
    publish("PUBLISH", 5, "{\"n\":1}");
    publish("SPUBLISH", 5, "{\"n\":1}");
    publish("SPUBLISH", 6, "{\"n\":1}");
    publish("SPUBLISH", 5, "{\"n\":2}");
    publish("PUBLISH", 5, "{\"n\":2}");
    run_until(scene.messages == 3 && metric(METRIC_EVENTS_DUPLICATE) == 2);
}

static void test_a_line_that_ends_is_told_and_another_one_hears_what_others_publish(void **state)
{
    struct health health;

    (void)state;
    subscribe(0);
    run("CLIENT KILL TYPE PUBSUB");
    run_until(scene.lost == 1);
    assert_int_equal(metric(METRIC_PUBLISH_HEARD), 0);
    assert_int_equal(metric(METRIC_PUBLISH_LOST), 1);
    run_until(scene.subscribed == 2);
    health_read(board, HEALTH_SHARDS, &health);
    assert_int_equal(health.state, HEALTH_OK);
    publish("PUBLISH", 0, "{}");
    run_until(scene.messages == 1);
}

/* Messages of the shards arrive without it. */
static void test_who_may_not_subscribe_is_told_and_tries_again(void **state)
{
    struct health health;

    (void)state;
    run("ACL SETUSER default -subscribe");
    subscribe(0);
    assert_int_equal(metric(METRIC_PUBLISH_HEARD), 0);
    health_read(board, HEALTH_SHARDS, &health);
    assert_int_equal(health.state, HEALTH_FAILING);
    assert_non_null(strstr(health.why, "PUBLISH is not heard: Redis says: NOPERM"));
    publish_all(1);
    run("ACL SETUSER default +subscribe");
    run_until(metric(METRIC_PUBLISH_HEARD) == 1);
    health_read(board, HEALTH_SHARDS, &health);
    assert_int_equal(health.state, HEALTH_OK);
    assert_int_equal(metric(METRIC_PUBLISH_LOST), 0);
    assert_int_equal(scene.lost, 0);
}

static void test_who_is_busy_rests(void **state)
{
    (void)state;
    subscribe(REST_MS);
    do {
        publish_all(MESSAGE_RATE_BUSY);
        publish_all(1);
    } while (scene.turn_ms[1] - scene.turn_ms[0] < REST_MS - 10);
    publish_all(1); /* it continues */
}

static bool is_heard(void)
{
    redisReply *reply = redisCommand(publisher, "CLIENT LIST");
    bool is = strstr(reply->str, "name=sluiced") != NULL;

    freeReplyObject(reply);
    return is;
}

/* Like that of a gateway that drains while a master is unavailable: its commands live longer. */
static void test_it_may_go_before_its_commands_are_answered(void **state)
{
    (void)state;
    make_subscriber(0);
    run_until(is_heard());
    subscriber_free(scene.subscriber);
    scene.subscriber = NULL;
    run_until(!is_heard());
    uv_run(&test_loop.uv, UV_RUN_NOWAIT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_all_shards_are_heard_on_one_connection),
        TEST(test_what_others_publish_is_heard_on_the_same_connection),
        TEST(test_what_is_published_in_both_ways_is_heard_once),
        TEST(test_a_line_that_ends_is_told_and_another_one_hears_what_others_publish),
        TEST(test_who_may_not_subscribe_is_told_and_tries_again),
        TEST(test_who_is_busy_rests),
        TEST(test_it_may_go_before_its_commands_are_answered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
