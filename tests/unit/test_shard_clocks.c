/* test_shard_clocks.c - gateways that align the clocks of eight shards in a real redis-server. No
 * clock is set: ten minutes back is the same as an id ten minutes ahead. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/intake/shard_clocks.h"
#include "src/call/call_build.h"
#include "src/model/id.h"
#include "tests/support/core_group.h"
#include "tests/support/test_loop.h"

enum {
    SHARDS = 8,
    GATEWAYS = 2,
    ALL = (1 << SHARDS) - 1,
    STEP_MS = 600000,
    TIMEOUT_MS = 30000, /* a command that is sent again would be counted twice */
    HOUR_MS = 3600000
};

static struct test_loop test_loop;
static struct metrics_board *board;
static uint64_t now_ms; /* Redis's time when the test began */

struct gateway {
    struct redis_commands *commands;
    struct shard_clocks *clocks;
    struct metrics *metrics;
};

static struct gateway gateways[GATEWAYS];

static uint64_t count(enum metric metric)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < GATEWAYS; i++)
        sum += metric_get(gateways[i].metrics, metric);
    return sum;
}

static uint64_t redis_ms(void)
{
    redisReply *reply = core_command(&core, "TIME");
    uint64_t ms = strtoull(reply->element[0]->str, NULL, 10) * 1000 +
                  strtoull(reply->element[1]->str, NULL, 10) / 1000;

    freeReplyObject(reply);
    return ms;
}

static uint64_t until_ms(uint32_t shard)
{
    char room[65536];

    return strtoull(core_text(&core, room, "HGET sluice:{%u}:meta clock_until", (unsigned)shard),
                    NULL, 10);
}

static void assert_one_clock(void)
{
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        assert_int_equal(until_ms(shard), until_ms(0));
}

/* ---- waiting for answers ---- */

static void on_answer(void *owner, const redisReply *reply, const char *why)
{
    (void)why;
    assert_non_null(reply);
    *(bool *)owner = true;
}

/* Commands to Redis are answered in order, and one call leads to the next: after as many answers as
 * a round has calls, none is left. */
static void settle(void)
{
    for (size_t i = 0; i < GATEWAYS * (3 * SHARDS + 2); i++) {
        struct sl_call call = SL_CALL_INIT;
        bool is_answered = false;

        sl_call_begin(&call, 0, true);
        sl_call_add_str(&call, "PING");
        assert_int_equal(sl_call_finish(&call, NULL), 0);
        assert_int_equal(redis_commands_run_take(gateways[i % GATEWAYS].commands, &call, on_answer,
                                                 &is_answered),
                         0);
        RUN_UNTIL(&test_loop, is_answered);
    }
}

static void on_time(uv_timer_t *timer)
{
    uv_close((uv_handle_t *)timer, NULL);
}

static void wait_ms(uint64_t ms)
{
    uv_timer_t timer;

    uv_timer_init(&test_loop.uv, &timer);
    uv_timer_start(&timer, on_time, ms, 0);
    RUN_UNTIL(&test_loop, uv_is_closing((uv_handle_t *)&timer));
    uv_run(&test_loop.uv, UV_RUN_NOWAIT);
}

static void complain(void)
{
    fail_msg("waited too long: %" PRIu64 " raised, %" PRIu64 " marked", count(METRIC_CLOCK_RAISES),
             count(METRIC_LATE_MARKS));
}

static int start(void **state)
{
    struct sl_redis_address address;

    core_group_fresh(state);
    test_loop_init(&test_loop, complain);
    board = metrics_board_new(GATEWAYS);
    assert_int_equal(sl_redis_address_parse(sl_slice_str(core.url), &address, NULL), 0);
    for (unsigned i = 0; i < GATEWAYS; i++) {
        struct gateway *gateway = &gateways[i];

        gateway->metrics = metrics_slot(board, i);
        gateway->commands = redis_commands_new(&test_loop.uv, &address, "test", TIMEOUT_MS);
        gateway->clocks = shard_clocks_new(&test_loop.uv, gateway->commands, gateway->metrics);
        shard_clocks_begin(gateway->clocks, &core.meta);
    }
    now_ms = redis_ms();
    for (unsigned i = 0; i < GATEWAYS; i++)
        shard_clocks_take_time(gateways[i].clocks, ALL, now_ms, 0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    freeReplyObject(core_command(&core, "CONFIG SET min-replicas-to-write 0"));
    for (unsigned i = 0; i < GATEWAYS; i++) {
        redis_commands_free(gateways[i].commands);
        shard_clocks_free(gateways[i].clocks);
    }
    test_loop_done(&test_loop);
    metrics_board_free(board);
    return 0;
}

static void take_time(unsigned gateway, uint64_t high)
{
    shard_clocks_take_time(gateways[gateway].clocks, ALL, redis_ms(), high);
}

/* ---- tests ---- */

static void test_a_step_back_raises_all_shards_alike(void **state)
{
    uint64_t high = sl_id_first_at(now_ms + STEP_MS);

    (void)state;
    take_time(0, high);
    RUN_UNTIL(&test_loop, count(METRIC_CLOCK_RAISES) == SHARDS);
    settle();
    assert_int_equal(count(METRIC_CLOCK_RAISES), SHARDS);
    assert_one_clock();
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        assert_int_equal(shard_clocks_take_time(gateways[0].clocks, UINT64_C(1) << shard,
                                                until_ms(0) - 800, high),
                         until_ms(0) - 100);
    for (int i = 0; i < 20; i++) {
        char login[16];

        snprintf(login, sizeof(login), "u%d", i);
        assert_true(core_must_create(&core, login) > high);
    }
}

static void test_gateways_that_see_it_at_once_write_once(void **state)
{
    uint64_t high = sl_id_first_at(now_ms + STEP_MS);

    (void)state;
    take_time(0, high);
    take_time(1, high + 50 * SL_ID_PER_MS); /* it had minted a little more */
    RUN_UNTIL(&test_loop, count(METRIC_CLOCK_RAISES) == SHARDS);
    settle();
    assert_int_equal(count(METRIC_CLOCK_RAISES), SHARDS);
    assert_one_clock();
    for (unsigned i = 0; i < GATEWAYS; i++)
        assert_int_equal(shard_clocks_take_time(gateways[i].clocks, ALL, until_ms(0) - 800, high),
                         until_ms(0) - 100);
}

static void test_a_clock_that_goes_on_is_no_step(void **state)
{
    uint64_t high = sl_id_first_at(now_ms);

    (void)state;
    for (uint64_t ahead_ms = 0; ahead_ms <= 100; ahead_ms += 10)
        assert_int_equal(
            shard_clocks_take_time(gateways[0].clocks, ALL, now_ms, high + ahead_ms * SL_ID_PER_MS),
            now_ms);
    assert_int_equal(shard_clocks_take_time(gateways[0].clocks, ALL, now_ms, 0), now_ms);
    settle();
    assert_int_equal(count(METRIC_CLOCK_RAISES), 0);
}

static void test_one_shard_that_is_raised_takes_the_others_along(void **state)
{
    (void)state;
    shard_clocks_behind(gateways[0].clocks, 3, 1);
    shard_clocks_late(gateways[0].clocks, 3, sl_id_first_at(now_ms + STEP_MS));
    RUN_UNTIL(&test_loop, count(METRIC_CLOCK_RAISES) == SHARDS);
    settle();
    assert_int_equal(count(METRIC_CLOCK_RAISES), SHARDS);
    assert_int_equal(count(METRIC_LATE_MARKS), 0);
    assert_one_clock();
}

static void test_what_came_late_is_marked_once(void **state)
{
    uint32_t shard = sl_id_shard(core_must_create(&core, "ada"));
    uint64_t low = core_must_post(&core, "ada", "in order"), high;

    (void)state;
    core_must_post(&core, "ada", "late");
    high = sl_id_first_at(now_ms + STEP_MS);
    for (unsigned i = 0; i < GATEWAYS; i++) {
        shard_clocks_behind(gateways[i].clocks, shard, low);
        shard_clocks_late(gateways[i].clocks, shard, high);
    }
    RUN_UNTIL(&test_loop, count(METRIC_CLOCK_RAISES) == SHARDS);
    for (unsigned i = 0; i < GATEWAYS; i++) {
        shard_clocks_behind(gateways[i].clocks, shard,
                            low + 1); /* some events have passed meanwhile */
        shard_clocks_whole(gateways[i].clocks, shard, high + 9 * SL_ID_PER_MS);
    }
    settle();
    assert_int_equal(count(METRIC_LATE_MARKS), 1);
}

static void test_a_shard_that_was_waited_for_in_vain_is_marked_when_it_is_back(void **state)
{
    uint32_t shard = sl_id_shard(core_must_create(&core, "ada"));
    uint64_t low = core_must_post(&core, "ada", "in order"), high;

    (void)state;
    shard_clocks_behind(gateways[0].clocks, shard, low);
    high = core_must_post(&core, "ada", "nobody could wait for this");
    wait_ms(2); /* within the same millisecond the clock is not above it yet */
    settle();
    assert_int_equal(count(METRIC_LATE_MARKS), 0);
    shard_clocks_whole(gateways[0].clocks, shard, high);
    RUN_UNTIL(&test_loop, count(METRIC_LATE_MARKS) == 1);
    shard_clocks_whole(gateways[0].clocks, shard, high); /* it is not behind */
    settle();
    assert_int_equal(count(METRIC_LATE_MARKS), 1);
    assert_int_equal(count(METRIC_CLOCK_RAISES), 0);
}

static void test_it_is_asked_until_redis_does_it(void **state)
{
    (void)state;
    freeReplyObject(core_command(&core, "CONFIG SET min-replicas-to-write 1"));
    take_time(0, sl_id_first_at(now_ms + STEP_MS));
    wait_ms(300);
    assert_int_equal(count(METRIC_CLOCK_RAISES), 0);
    freeReplyObject(core_command(&core, "CONFIG SET min-replicas-to-write 0"));
    RUN_UNTIL(&test_loop, count(METRIC_CLOCK_RAISES) == SHARDS);
    assert_one_clock();
}

static void test_more_than_an_hour_is_given_up(void **state)
{
    (void)state;
    take_time(0, sl_id_first_at(now_ms + 2 * HOUR_MS));
    take_time(0, sl_id_first_at(now_ms + 2 * HOUR_MS));
    settle();
    assert_int_equal(count(METRIC_CLOCK_RAISES), 0);
    shard_clocks_late(gateways[0].clocks, 0,
                      sl_id_first_at(now_ms + STEP_MS)); /* the next one is not */
    RUN_UNTIL(&test_loop, count(METRIC_CLOCK_RAISES) == SHARDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_step_back_raises_all_shards_alike, start, stop),
        cmocka_unit_test_setup_teardown(test_gateways_that_see_it_at_once_write_once, start, stop),
        cmocka_unit_test_setup_teardown(test_a_clock_that_goes_on_is_no_step, start, stop),
        cmocka_unit_test_setup_teardown(test_one_shard_that_is_raised_takes_the_others_along, start,
                                        stop),
        cmocka_unit_test_setup_teardown(test_what_came_late_is_marked_once, start, stop),
        cmocka_unit_test_setup_teardown(
            test_a_shard_that_was_waited_for_in_vain_is_marked_when_it_is_back, start, stop),
        cmocka_unit_test_setup_teardown(test_it_is_asked_until_redis_does_it, start, stop),
        cmocka_unit_test_setup_teardown(test_more_than_an_hour_is_given_up, start, stop),
    };

    shards = SHARDS;
    return cmocka_run_group_tests(tests, core_group_start, core_group_stop);
}
