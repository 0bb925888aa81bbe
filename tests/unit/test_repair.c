/* test_repair.c - subscriber, repair and the log with a real redis-server: whatever is interrupted,
 * every event arrives once and in order. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "gateway/intake/repair.h"
#include "gateway/intake/subscriber.h"
#include "src/model/id.h"
#include "src/model/keys.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/test_loop.h"
#include "tests/support/redis_server.h"

enum { SHARDS = 2 };

static struct test_loop test_loop;
static struct metrics_board *board;
static struct metrics *metrics;
static struct redis_server server;
static redisContext *producer;
static struct redis_commands *commands;
static struct log_reader *log_reader;
static struct repair *repair;
static struct subscriber *subscriber;

/* What has arrived. */
static struct {
    uint64_t last[SHARDS]; /* of the events, which are numbered from `first` on without gaps */
    size_t count, unended;
    size_t gap_count;
    struct gap gap;
    size_t subscribed, lost;
} told;

/* What was written. */
static uint64_t written[SHARDS];
static bool writes_before_subscribe; /* between reading the ends of the logs and the subscription */

static void produce(uint32_t shard, unsigned count, bool is_published);

static void on_event(void *context, const struct live_message *message)
{
    (void)context;
    if (message->id == 0)
        return;
    if (message->previous != told.last[message->shard])
        fail_msg("shard %u: %" PRIu64 " behind %" PRIu64, message->shard, message->id,
                 told.last[message->shard]);
    assert_true(sl_slice_starts_with(message->body, SL_SLICE("{\"n\":")));
    told.last[message->shard] = message->id;
    told.count++;
    told.unended++;
}

static void on_gap(void *context, const struct gap *gap)
{
    (void)context;
    told.gap = *gap;
    told.gap_count++;
    told.last[gap->shard] = gap->to;
}

static void on_turn_end(void *context)
{
    (void)context;
    told.unended = 0;
}

static int on_log_end(void *context, uint32_t shard, uint64_t id)
{
    (void)context;
    if (writes_before_subscribe && shard == SHARDS - 1) {
        for (uint32_t each = 0; each < SHARDS; each++)
            produce(each, 3, true);
    }
    return repair_log_end(repair, shard, id);
}

static void on_message(void *context, const struct live_message *message)
{
    (void)context;
    repair_take(repair, message);
}

static void on_subscribed(void *context, uint32_t shards)
{
    (void)context;
    assert_int_equal(shards, SHARDS);
    told.subscribed++;
    repair_set_hearing(repair, true);
}

static void on_lost(void *context, const char *reason)
{
    (void)context;
    (void)reason;
    told.lost++;
    repair_set_hearing(repair, false);
}

static void complain(void)
{
    fail_msg("waited too long: %zu events, last %" PRIu64 " and %" PRIu64, told.count, told.last[0],
             told.last[1]);
}

#define run_until(condition) RUN_UNTIL(&test_loop, condition)
#define run(...)             redis_server_run(producer, __VA_ARGS__)

static bool all_has_come(void)
{
    return told.last[0] == written[0] && told.last[1] == written[1] && told.unended == 0;
}

static void on_looked(void *owner, const struct log_batch *batch, int error, const char *why)
{
    (void)batch;
    (void)error;
    (void)why;
    *(bool *)owner = true;
}

static void start_intake_with(uint32_t check_ms, size_t max_held_bytes)
{
    const struct subscriber_callbacks heard = {
        .log_end = on_log_end,
        .message = on_message,
        .turn_end = on_turn_end,
        .subscribed = on_subscribed,
        .lost = on_lost,
    };
    const struct repair_callbacks repaired = {{on_event, on_gap}, on_turn_end};
    bool has_looked = false;
    struct sl_redis_address address;
    struct subscriber_settings subscriber_settings = {.loop = &test_loop.uv,
                                                      .address = &address,
                                                      .metrics = metrics,
                                                      .ping_ms = 5000,
                                                      .timeout_ms = 5000};
    struct repair_settings settings = {&test_loop.uv, NULL, metrics, max_held_bytes, check_ms};

    assert_int_equal(sl_redis_address_parse(sl_slice_str(server.url), &address, NULL), 0);
    commands = redis_commands_new(&test_loop.uv, &address, "test", 1000);
    log_reader = settings.log = log_reader_new(commands);
    repair = repair_new(&settings, &repaired, NULL);
    subscriber = subscriber_new(&subscriber_settings, &heard, NULL);
    assert_non_null(repair);
    assert_non_null(subscriber);
    run_until(told.subscribed == 1);
    /* The requests for the logs' ends were sent before this one. */
    assert_int_equal(log_reader_read(log_reader, 0, 0, 1, on_looked, &has_looked), 0);
    run_until(has_looked);
}

static void start_intake(void)
{
    start_intake_with(REPAIR_CHECK_MS, REPAIR_HELD_BYTES);
}

static void stop_intake(void)
{
    subscriber_free(subscriber);
    redis_commands_free(commands);
    repair_free(repair);
    log_reader_free(log_reader);
    subscriber = NULL;
    commands = NULL;
    repair = NULL;
    log_reader = NULL;
}

static int start_redis(void **state)
{
    (void)state;
    memset(&told, 0, sizeof(told));
    memset(written, 0, sizeof(written));
    writes_before_subscribe = false;
    redis_server_init(&server, true);
    producer = redis_server_connect(&server);
    run("HSET sluice:{0}:meta schema 1 database 0123456789abcdef0123456789abcdef shards %d "
        "log_count 1000000 log_age_ms 86400000",
        SHARDS);
    test_loop_init(&test_loop, complain);
    board = metrics_board_new(1);
    metrics = metrics_slot(board, 0);
    return 0;
}

static int stop_redis(void **state)
{
    (void)state;
    if (repair)
        stop_intake();
    test_loop_done(&test_loop);
    assert_int_equal(metric_get(metrics, METRIC_HELD_BYTES), 0);
    metrics_board_free(board);
    redisFree(producer);
    redis_server_done(&server);
    return 0;
}

/* Logs `count` events of a shard, and publishes them, or does not. */
static void produce(uint32_t shard, unsigned count, bool is_published)
{
    static const char script[] =
        "local log, last, base = KEYS[1], ARGV[1], tonumber(ARGV[3])\n"
        "for i = 1, tonumber(ARGV[2]) do\n"
        "  local id = string.format('%.0f', base + i * 4096)\n"
        "  local json = '{\"n\":' .. id .. '}'\n"
        "  redis.call('XADD', log, id .. '-0', 'p', last, 'e', json)\n"
        "  if ARGV[4] == '1' then\n"
        "    redis.call('PUBLISH', ARGV[5], id .. ' ' .. last .. ' ' .. json)\n"
        "  end\n"
        "  last = id\n"
        "end\n";
    char log[SL_KEY_SIZE], live[SL_KEY_SIZE];
    uint64_t base = written[shard] ? written[shard] : (uint64_t)shard * SL_ID_PER_SHARD;

    run("EVAL %s 1 %s %llu %u %llu %d %s", script, sl_key(shard, "log", log),
        (unsigned long long)written[shard], count, (unsigned long long)base, is_published ? 1 : 0,
        sl_key(shard, "live", live));
    written[shard] = base + (uint64_t)count * SL_ID_PER_MS;
}

static void reconnect_producer(void)
{
    redisFree(producer);
    producer = redis_server_connect(&server);
}

static void test_events_in_order_need_no_log(void **state)
{
    (void)state;
    start_intake();
    produce(0, 1000, true);
    produce(1, 1000, true);
    run_until(all_has_come());
    assert_int_equal(told.count, 2000);
    assert_int_equal(metric_get(metrics, METRIC_EVENTS_REPAIRED), 0);
}

static void test_hearing_begins_where_the_log_ends(void **state)
{
    (void)state;
    produce(0, 10, true);
    told.last[0] = written[0];
    start_intake();
    produce(0, 10, true);
    run_until(all_has_come());
    assert_int_equal(told.count, 10);
}

static void test_long_gap_is_read_in_batches(void **state)
{
    (void)state;
    start_intake_with(60000, REPAIR_HELD_BYTES);
    produce(0, 5000, false);
    produce(0, 10, true);
    produce(1, 10, true);
    run_until(all_has_come());
    assert_int_equal(told.count, 5020);
    assert_int_equal(metric_get(metrics, METRIC_EVENT_GAPS), 1);
    assert_int_equal(metric_get(metrics, METRIC_EVENTS_REPAIRED), 5000);
}

static void test_little_room_for_what_waits_loses_nothing(void **state)
{
    (void)state;
    start_intake_with(60000, 500);
    produce(0, 2000, false);
    produce(0, 2000, true);
    run_until(all_has_come());
    assert_int_equal(told.count, 4000);
    assert_int_equal(told.gap_count, 0);
}

static void test_last_event_that_was_lost_is_found_when_the_shard_is_quiet(void **state)
{
    (void)state;
    start_intake_with(20, REPAIR_HELD_BYTES);
    produce(0, 1, true);
    produce(0, 1, false);
    produce(1, 300, false);
    run_until(all_has_come());
    assert_int_equal(told.gap_count, 0);
    produce(0, 1, true);
    run_until(all_has_come());
}

static void test_lost_connection_costs_no_event(void **state)
{
    (void)state;
    start_intake_with(60000, REPAIR_HELD_BYTES);
    for (size_t round = 1; round <= 5; round++) {
        produce(0, 200, true);
        run("CLIENT KILL TYPE pubsub");
        produce(0, 200, true);
        produce(1, 200, true);
        run_until(told.subscribed == round + 1 && all_has_come());
    }
    assert_int_equal(told.count, 3000);
    assert_int_equal(told.gap_count, 0);
}

static void test_what_was_published_while_it_subscribed_is_there_at_once(void **state)
{
    (void)state;
    writes_before_subscribe = true;
    start_intake_with(60000, REPAIR_HELD_BYTES);
    run_until(all_has_come());
    assert_int_equal(told.count, 3 * SHARDS);
    run("CLIENT KILL TYPE pubsub");
    produce(0, 200, true); /* one shard must be repaired as well, the other need not */
    run_until(told.subscribed == 2 && all_has_come());
    assert_int_equal(told.count, 6 * SHARDS + 200);
    assert_int_equal(told.gap_count, 0);
}

static void test_restarted_redis_costs_no_event(void **state)
{
    (void)state;
    run("CONFIG SET appendfsync always");
    start_intake();
    produce(0, 100, true);
    redis_server_kill(&server);
    run_until(told.lost == 1);
    redis_server_restart(&server);
    reconnect_producer();
    produce(0, 1000, true);
    produce(1, 1, true);
    run_until(told.subscribed == 2 && all_has_come());
    assert_int_equal(told.count, 1101);
    assert_int_equal(told.gap_count, 0);
}

static void test_log_is_asked_again_when_redis_did_not_answer(void **state)
{
    (void)state;
    start_intake_with(60000, REPAIR_HELD_BYTES);
    produce(0, 500, false);
    run("CONFIG SET maxclients 2"); /* the producer and the subscriber */
    run("CLIENT KILL TYPE normal");
    produce(0, 1, true);
    run_until(metric_get(metrics, METRIC_LOG_READ_FAILURES) >= 2);
    produce(0, 1, true);
    produce(1, 5, true); /* does not wait for the other one */
    run_until(told.last[1] == written[1]);
    assert_int_equal(told.last[0], 0);
    run("CONFIG SET maxclients 100");
    run_until(all_has_come());
    assert_int_equal(told.count, 507);
    assert_int_equal(told.gap_count, 0);
}

static void test_redis_that_refuses_to_give_its_log_is_asked_until_it_does(void **state)
{
    (void)state;
    start_intake_with(60000, REPAIR_HELD_BYTES);
    produce(0, 5, false);
    run("ACL SETUSER default -xrange");
    produce(0, 1, true);
    run_until(metric_get(metrics, METRIC_LOG_READ_FAILURES) >= 2);
    run("ACL SETUSER default +xrange");
    run_until(all_has_come());
    assert_int_equal(told.count, 6);
    assert_int_equal(told.gap_count, 0);
}

static void test_trimmed_events_are_told_as_a_gap(void **state)
{
    uint64_t gone;

    (void)state;
    start_intake_with(60000, REPAIR_HELD_BYTES);
    produce(0, 5, true);
    run_until(all_has_come());
    produce(0, 5, false);
    gone = written[0];
    produce(0, 5, false);
    run("XTRIM sluice:{0}:log MINID %llu", (unsigned long long)gone + 1);
    produce(0, 1, true);
    run_until(all_has_come());
    assert_int_equal(told.count, 11);
    assert_int_equal(told.gap_count, 1);
    assert_int_equal(told.gap.reason, GAP_RETENTION);
    assert_int_equal(told.gap.from, 5 * SL_ID_PER_MS);
    assert_int_equal(told.gap.to, gone);
}

static void test_log_that_cannot_be_read_is_told_as_a_gap(void **state)
{
    (void)state;
    start_intake_with(60000, REPAIR_HELD_BYTES);
    produce(0, 5, false);
    run("XADD sluice:{0}:log %llu-0 no event", (unsigned long long)written[0] + 1);
    written[0]++;
    produce(0, 3, true);
    run_until(all_has_come());
    assert_int_equal(told.count, 3);
    assert_int_equal(told.gap_count, 1);
    assert_int_equal(told.gap.reason, GAP_REDIS);
    assert_int_equal(told.gap.from, 0);
}

static bool all_are_complete(void)
{
    return repair_is_complete(repair, 0) && repair_is_complete(repair, 1);
}

static void test_a_shard_of_which_something_is_missing_is_not_complete(void **state)
{
    (void)state;
    start_intake_with(60000, REPAIR_HELD_BYTES);
    run_until(all_are_complete());
    produce(0, 300, false);
    produce(0, 1, true);
    run_until(!repair_is_complete(repair, 0));
    assert_true(told.last[0] < written[0] && repair_is_complete(repair, 1));
    run_until(repair_is_complete(repair, 0));
    assert_true(all_has_come());

    told.subscribed = 0;
    run("CLIENT KILL TYPE pubsub");
    run_until(told.lost == 1);
    assert_false(repair_is_complete(repair, 0) || repair_is_complete(repair, 1));
    run_until(told.subscribed == 1);
    assert_false(repair_is_complete(repair, 0)); /* its log has not been looked up */
    run_until(all_are_complete());
}

/* It is looked up again after the period, however busy the shard is. */
static void test_a_shard_whose_log_cannot_be_looked_up_is_not_complete(void **state)
{
    (void)state;
    start_intake_with(50, REPAIR_HELD_BYTES);
    run_until(all_are_complete());
    told.subscribed = 0;
    run("ACL SETUSER default -xrange");
    run("CLIENT KILL TYPE pubsub");
    run_until(told.subscribed == 1);
    for (int i = 0; i < 5; i++) {
        uint64_t failures = metric_get(metrics, METRIC_LOG_READ_FAILURES);

        produce(0, 1, true);
        run_until(metric_get(metrics, METRIC_LOG_READ_FAILURES) > failures + 1);
        assert_false(repair_is_complete(repair, 0));
    }
    run("ACL SETUSER default +xrange");
    run_until(all_are_complete());
}

/* The retry pauses of one shard, a second by then, do not apply to the other. */
static void test_a_shard_whose_log_cannot_be_read_does_not_keep_others_waiting(void **state)
{
    uint64_t failures;

    (void)state;
    start_intake();
    run_until(all_are_complete());
    run("ACL SETUSER default -xrange %s", "(+xrange ~sluice:{0}:*)");
    produce(1, 1, false);
    produce(1, 1, true);
    run_until(metric_get(metrics, METRIC_LOG_READ_FAILURES) >= 4);
    failures = metric_get(metrics, METRIC_LOG_READ_FAILURES);
    produce(0, 1, false);
    produce(0, 1, true);
    run_until(told.last[0] == written[0]);
    assert_int_equal(metric_get(metrics, METRIC_LOG_READ_FAILURES), failures);
    assert_false(repair_is_complete(repair, 1));
    run("ACL SETUSER default +xrange clearselectors");
    run_until(all_has_come());
}

static void test_it_can_be_freed_at_any_time(void **state)
{
    (void)state;
    for (int turns = 0; turns < 8; turns++) {
        told.subscribed = 0;
        told.last[0] = written[0];
        start_intake();
        produce(0, 500, false);
        produce(0, 1, true);
        for (int turn = 0; turn < turns; turn++)
            uv_run(&test_loop.uv, UV_RUN_ONCE);
        stop_intake();
        while (uv_run(&test_loop.uv, UV_RUN_NOWAIT))
            continue;
    }
}

static void test_out_of_memory_delays_events_at_most(void **state)
{
    bool has_failed = true;

    (void)state;
    start_intake_with(60000, REPAIR_HELD_BYTES);
    run_until(told.subscribed == 1);
    for (uint64_t n = 0; has_failed; n++) {
        produce(0, 3, false);
        produce(0, 2, true);
        mem_fail_after(n);
        while (!mem_failed() && !all_has_come())
            uv_run(&test_loop.uv, UV_RUN_ONCE);
        has_failed = mem_failed();
        for (int turn = 0; has_failed && turn < 2; turn++)
            uv_run(&test_loop.uv, UV_RUN_NOWAIT);
        mem_fail_never();
        run_until(all_has_come());
    }
    assert_int_equal(told.gap_count, 0);
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, start_redis, stop_redis)
    static const struct CMUnitTest tests[] = {
        test(test_events_in_order_need_no_log),
        test(test_hearing_begins_where_the_log_ends),
        test(test_long_gap_is_read_in_batches),
        test(test_little_room_for_what_waits_loses_nothing),
        test(test_last_event_that_was_lost_is_found_when_the_shard_is_quiet),
        test(test_lost_connection_costs_no_event),
        test(test_what_was_published_while_it_subscribed_is_there_at_once),
        test(test_restarted_redis_costs_no_event),
        test(test_log_is_asked_again_when_redis_did_not_answer),
        test(test_redis_that_refuses_to_give_its_log_is_asked_until_it_does),
        test(test_trimmed_events_are_told_as_a_gap),
        test(test_log_that_cannot_be_read_is_told_as_a_gap),
        test(test_a_shard_of_which_something_is_missing_is_not_complete),
        test(test_a_shard_whose_log_cannot_be_looked_up_is_not_complete),
        test(test_a_shard_whose_log_cannot_be_read_does_not_keep_others_waiting),
        test(test_it_can_be_freed_at_any_time),
        test(test_out_of_memory_delays_events_at_most),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
