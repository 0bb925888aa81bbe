/* test_round.c - rounds with a real redis-server: what was published before a round has arrived at
 * its end, also on a connection that was pinged, killed, or is new. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "gateway/intake/round.h"
#include "gateway/intake/subscriber.h"
#include "gateway/redis/redis_commands.h"
#include "src/model/id.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/test_loop.h"
#include "tests/support/redis_server.h"

static struct test_loop test_loop;
static struct metrics_board *board;
static struct metrics *metrics;
static struct redis_server server;
static redisContext *producer;
static struct redis_commands *commands;
static struct subscriber *subscriber;
static struct round *round_of_questions;

static struct {
    unsigned subscribed, lost, messages, rounds;
    uint64_t time_ms, id; /* of the last round */
} told;

static int on_log_end(void *context, uint32_t shard, uint64_t id)
{
    (void)context;
    (void)shard;
    (void)id;
    return 0;
}

static void on_message(void *context, const struct live_message *message)
{
    (void)context;
    (void)message;
    told.messages++;
}

static void on_pong(void *context, uint64_t number)
{
    (void)context;
    round_pong(round_of_questions, number);
}

static void on_turn_end(void *context)
{
    (void)context;
}

static void on_subscribed(void *context, uint32_t shards)
{
    (void)context;
    (void)shards;
    told.subscribed++;
    round_set_hearing(round_of_questions, true);
}

static void on_lost(void *context, const char *reason)
{
    (void)context;
    (void)reason;
    told.lost++;
    round_set_hearing(round_of_questions, false);
}

static uint64_t on_redis_time(void *context, uint64_t shards, uint64_t time_ms)
{
    (void)context;
    assert_true(shards == UINT64_MAX);
    told.time_ms = time_ms;
    return time_ms;
}

static void on_over(void *context, uint64_t id, uint64_t shards)
{
    (void)context;
    assert_true(shards == UINT64_MAX);
    told.rounds++;
    told.id = id;
}

static void complain(void)
{
    fail_msg("waited too long: %u rounds, %u messages", told.rounds, told.messages);
}

#define run_until(condition) RUN_UNTIL(&test_loop, condition)
#define run(...)             redis_server_run(producer, __VA_ARGS__)

static void start(uint32_t ping_ms)
{
    static const struct subscriber_callbacks heard = {.log_end = on_log_end,
                                                      .message = on_message,
                                                      .pong = on_pong,
                                                      .turn_end = on_turn_end,
                                                      .subscribed = on_subscribed,
                                                      .lost = on_lost};
    static const struct round_callbacks callbacks = {.ids_ms = on_redis_time, .over = on_over};
    struct sl_redis_address address;
    struct subscriber_settings settings = {.loop = &test_loop.uv,
                                           .address = &address,
                                           .metrics = metrics,
                                           .ping_ms = ping_ms,
                                           .timeout_ms = 5000};

    assert_int_equal(sl_redis_address_parse(sl_slice_str(server.url), &address, NULL), 0);
    commands = settings.commands = redis_commands_new(&test_loop.uv, &address, "test", 5000);
    subscriber = subscriber_new(&settings, &heard, NULL);
    round_of_questions = round_new(&settings, subscriber, &callbacks, NULL);
    assert_true(commands && round_of_questions && subscriber);
    run_until(told.subscribed == 1);
}

static int begin(void **state)
{
    (void)state;
    memset(&told, 0, sizeof(told));
    redis_server_init(&server, false);
    producer = redis_server_connect(&server);
    run("HSET sluice:{0}:meta schema 1 database 0123456789abcdef0123456789abcdef shards 1");
    test_loop_init(&test_loop, complain);
    board = metrics_board_new(1);
    metrics = metrics_slot(board, 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    round_set_hearing(round_of_questions, false);
    subscriber_free(subscriber);
    redis_commands_free(commands);
    round_free(round_of_questions);
    test_loop_done(&test_loop);
    metrics_board_free(board);
    redisFree(producer);
    redis_server_done(&server);
    return 0;
}

/* Redis's time in milliseconds since 1970. */
static uint64_t redis_time_ms(void)
{
    redisReply *reply = redisCommand(producer, "TIME");
    uint64_t ms = strtoull(reply->element[0]->str, NULL, 10) * 1000 +
                  strtoull(reply->element[1]->str, NULL, 10) / 1000;

    freeReplyObject(reply);
    return ms;
}

static void test_what_was_published_before_has_been_heard(void **state)
{
    (void)state;
    start(5000);
    for (unsigned i = 1; i <= 50; i++) {
        uint64_t time_ms;

        run("PUBLISH sluice:{0}:live {}");
        time_ms = redis_time_ms();
        do {
            round_want(round_of_questions, time_ms + 1);
            run_until(told.rounds > 0);
            told.rounds = 0;
        } while (told.time_ms <= time_ms);
        assert_int_equal(told.messages, i);
        assert_true(told.id == sl_id_first_at(told.time_ms) - 1);
    }
}

/* The first round shows what time it is, and all others are on time. */
static void test_rounds_do_not_come_too_early(void **state)
{
    (void)state;
    start(5000);
    round_want(round_of_questions, 0);
    run_until(told.rounds == 1);
    for (unsigned i = 2; i < 100; i++) {
        uint64_t wanted_ms = told.time_ms + 1 + i % 3;

        round_want(round_of_questions, wanted_ms);
        run_until(told.rounds == i);
        assert_true(told.time_ms >= wanted_ms);
    }
}

static void test_a_round_finds_the_next_second(void **state)
{
    (void)state;
    start(5000);
    round_want_second(round_of_questions); /* nothing is known yet: at once */
    run_until(told.rounds == 1);
    for (unsigned i = 2; i <= 3; i++) {
        uint64_t second = told.time_ms / 1000;

        round_want_second(round_of_questions);
        run_until(told.rounds == i);
        assert_true(told.time_ms / 1000 > second);
    }
}

static void test_pings_of_the_connection_are_no_rounds(void **state)
{
    enum { PING_MS = 400 }; /* silence of 1,200 ms would end the connection */

    (void)state;
    start(PING_MS);
    for (unsigned i = 1; i <= 2; i++) {
        round_want_later(round_of_questions, 2 * PING_MS + PING_MS / 2);
        run_until(told.rounds == i);
    }
    assert_int_equal(told.lost, 0);
}

static void test_a_round_ends_with_its_connection(void **state)
{
    (void)state;
    start(5000);
    for (unsigned i = 1; i <= 20; i++) {
        round_want(round_of_questions, 0);
        for (unsigned turn = 0; turn < i % 4; turn++)
            uv_run(&test_loop.uv, UV_RUN_NOWAIT);
        run("CLIENT KILL TYPE pubsub");
        run_until(told.lost == i);
        told.rounds = 0;
        run_until(told.subscribed == i + 1);
        assert_int_equal(told.rounds, 0);
        round_want(round_of_questions, 0);
        run_until(told.rounds == 1);
    }
}

static void test_while_nothing_is_heard_there_are_none(void **state)
{
    (void)state;
    start(5000);
    redis_server_kill(&server);
    run_until(told.lost == 1);
    round_want(round_of_questions, 0);
    round_want_later(round_of_questions, ROUND_UNSURE_MS);
    redisFree(producer);
    redis_server_restart(&server);
    producer = redis_server_connect(&server);
    run_until(told.subscribed == 2);
    assert_int_equal(told.rounds, 0);
    round_want(round_of_questions, 0);
    run_until(told.rounds == 1);
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, begin, end)
    static const struct CMUnitTest tests[] = {
        test(test_what_was_published_before_has_been_heard),
        test(test_rounds_do_not_come_too_early),
        test(test_a_round_finds_the_next_second),
        test(test_pings_of_the_connection_are_no_rounds),
        test(test_a_round_ends_with_its_connection),
        test(test_while_nothing_is_heard_there_are_none),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
