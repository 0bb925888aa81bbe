/* test_redis_health.c - a worker is ready while it is subscribed to Redis and gets answers. */
#include <errno.h>
#include <signal.h>

#include "base/log.h"
#include "gateway/metrics/health.h"
#include "gateway/redis/redis_health.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/test_loop.h"
#include "tests/support/redis_server.h"

enum { TIMEOUT_MS = 200 };

static uint32_t late_ms;

static struct redis_server server;
static struct test_loop test_loop;
static struct metrics_board *board;
static struct metrics *metrics;
static struct redis_commands *streams, *api;
static struct redis_health *health;
static bool is_ready;
static unsigned changes;

static void on_change(void *context, bool now_ready)
{
    assert_ptr_equal(context, &server);
    assert_int_not_equal(now_ready, is_ready);
    is_ready = now_ready;
    changes++;
}

static struct redis_commands *connect_to(const char *socket)
{
    struct sl_redis_address address = {.db = 0};

    snprintf(address.path, sizeof(address.path), "%s", socket);
    return redis_commands_new(&test_loop.uv, &address, "test", TIMEOUT_MS);
}

static void start(const char *streams_socket, const char *api_socket)
{
    streams = connect_to(streams_socket);
    api = connect_to(api_socket);
    health = redis_health_new(&(struct redis_health_settings){
        .loop = &test_loop.uv,
        .metrics = metrics,
        .streams = streams,
        .api = api,
        .late_ms = late_ms,
        .changed = on_change,
        .context = &server,
    });
    assert_non_null(health);
    redis_health_set_access(health, true);
}

static int begin(void **state)
{
    (void)state;
    redis_server_init(&server, false);
    test_loop_init(&test_loop, NULL);
    board = metrics_board_new(1);
    metrics = metrics_slot(board, 0);
    is_ready = false;
    changes = 0;
    late_ms = 300;
    log_set_level(LOG_LEVEL_ERROR);
    return 0;
}

static int end(void **state)
{
    (void)state;
    redis_commands_free(streams);
    redis_commands_free(api);
    redis_health_free(health);
    test_loop_done(&test_loop);
    metrics_board_free(board);
    redis_server_done(&server);
    return 0;
}

static void run_for_ms(uint64_t ms)
{
    uint64_t begun_ms = uv_now(&test_loop.uv);

    RUN_UNTIL(&test_loop, uv_now(&test_loop.uv) >= begun_ms + ms);
}

static void expect(bool expected)
{
    assert_int_equal(is_ready, expected);
    assert_int_equal(metric_get(metrics, METRIC_READY), expected);
}

static void test_hearing_alone_is_not_enough(void **state)
{
    (void)state;
    start(server.socket, server.socket);
    redis_health_set_hearing(health, true);
    expect(false);
    RUN_UNTIL(&test_loop, is_ready);
    expect(true);
    redis_health_set_hearing(health, false);
    expect(false);
    redis_health_set_hearing(health, true);
    expect(true);
    assert_int_equal(changes, 3);
}

static void test_who_is_shut_out_must_be_known(void **state)
{
    (void)state;
    start(server.socket, server.socket);
    redis_health_set_access(health, false);
    redis_health_set_hearing(health, true);
    run_for_ms(3 * TIMEOUT_MS);
    expect(false);
    redis_health_set_access(health, true);
    expect(true);
}

static void test_answers_alone_are_not_enough(void **state)
{
    (void)state;
    start(server.socket, server.socket);
    run_for_ms(500);
    expect(false);
    assert_int_equal(changes, 0);
}

static void test_each_connection_counts(void **state)
{
    (void)state;
    start("/nowhere/redis.sock", server.socket);
    redis_health_set_hearing(health, true);
    run_for_ms(500);
    expect(false);
    redis_commands_free(streams);
    redis_commands_free(api);
    redis_health_free(health);
    start(server.socket, "/nowhere/redis.sock");
    redis_health_set_hearing(health, true);
    run_for_ms(500);
    expect(false);
}

static void test_redis_that_stops_answering_is_noticed_and_its_return(void **state)
{
    uint64_t begun_ms;

    (void)state;
    start(server.socket, server.socket);
    redis_health_set_hearing(health, true);
    RUN_UNTIL(&test_loop, is_ready);
    kill(server.pid, SIGSTOP);
    RUN_UNTIL(&test_loop, !is_ready);
    run_for_ms(500); /* pending tries have failed before */
    begun_ms = uv_now(&test_loop.uv);
    kill(server.pid, SIGCONT);
    RUN_UNTIL(&test_loop, is_ready);
    assert_in_range(uv_now(&test_loop.uv) - begun_ms, 0, 2000);
    assert_int_equal(changes, 3);
}

static enum health_state state_of(enum health_part part)
{
    struct health found;

    health_read(board, part, &found);
    return found.state;
}

static void expect_parts(enum health_state with_streams, enum health_state with_reads,
                         enum health_state with_writes)
{
    assert_int_equal(state_of(HEALTH_STREAMS), with_streams);
    assert_int_equal(state_of(HEALTH_READS), with_reads);
    assert_int_equal(state_of(HEALTH_WRITES), with_writes);
}

static void test_refused_writes_leave_it_ready(void **state)
{
    struct health found;

    (void)state;
    start(server.socket, server.socket);
    expect_parts(HEALTH_FAILING, HEALTH_FAILING, HEALTH_FAILING);
    redis_health_set_hearing(health, true);
    RUN_UNTIL(&test_loop, is_ready);
    expect_parts(HEALTH_OK, HEALTH_OK, HEALTH_OK);
    redis_health_set_writes(health, -ENOSPC, "the memory is full");
    expect_parts(HEALTH_OK, HEALTH_OK, HEALTH_FAILING);
    health_read(board, HEALTH_WRITES, &found);
    assert_string_equal(found.why, "the memory is full");
    redis_health_set_writes(health, -ENODATA, "there is no database");
    expect_parts(HEALTH_OK, HEALTH_FAILING, HEALTH_FAILING);
    redis_health_set_writes(health, 0, NULL);
    expect_parts(HEALTH_OK, HEALTH_OK, HEALTH_OK);
    redis_health_set_hearing(health, false);
    expect_parts(HEALTH_FAILING, HEALTH_OK, HEALTH_OK);
    assert_int_equal(changes, 2);
}

/* A pause shorter than the timeout of an answer. */
static void test_short_silence_changes_nothing(void **state)
{
    (void)state;
    late_ms = 20000;
    start(server.socket, server.socket);
    redis_health_set_hearing(health, true);
    RUN_UNTIL(&test_loop, is_ready);
    redis_server_kill(&server);
    redis_server_restart(&server);
    run_for_ms(2500);
    expect(true);
    assert_int_equal(changes, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_hearing_alone_is_not_enough),
        TEST(test_who_is_shut_out_must_be_known),
        TEST(test_answers_alone_are_not_enough),
        TEST(test_each_connection_counts),
        TEST(test_redis_that_stops_answering_is_noticed_and_its_return),
        TEST(test_refused_writes_leave_it_ready),
        TEST(test_short_silence_changes_nothing),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
