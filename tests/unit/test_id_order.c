/* test_id_order.c - events and rounds in scripted and in random orders, over several shards. Ids
 * are small numbers here, and times rarely matter. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "gateway/intake/id_order.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/draw.h"

enum { WAIT_MS = 1000 };

static struct metrics_board *board;
static struct metrics *metrics;
static struct buffer told; /* the callbacks, a word each */
static struct id_order *order;
static uint64_t now_us = 1;

/* ---- callbacks ---- */

static void on_pass(void *context, const struct order_item *item)
{
    const char *const marks[] = {
        [ORDER_EVENT] = "", [ORDER_PASS] = "pass:", [ORDER_MISS] = "miss:", [ORDER_GAP] = "gap:"};

    assert_ptr_equal(context, &told);
    buffer_append_format(&told, "%s%" PRIu64 "%s ", marks[item->kind], item->id,
                         item->event && item->event->is_late ? "!" : "");
}

static void on_watermark(void *context, uint64_t id)
{
    (void)context;
    buffer_append_format(&told, "<=%" PRIu64 " ", id);
}

static void on_behind(void *context, uint32_t shard, uint64_t low, enum order_behind why)
{
    const char *const reasons[] = {[ORDER_BEHIND_WAIT] = "wait",
                                   [ORDER_BEHIND_MEMORY] = "memory",
                                   [ORDER_BEHIND_LATE] = "late"};

    (void)context;
    buffer_append_format(&told, "behind(%u,%" PRIu64 ",%s) ", shard, low, reasons[why]);
}

static void on_low(void *context, uint32_t shard, uint64_t low)
{
    (void)context;
    buffer_append_format(&told, "low(%u,%" PRIu64 ") ", shard, low);
}

static void on_whole(void *context, uint32_t shard)
{
    (void)context;
    buffer_append_format(&told, "whole(%u) ", shard);
}

static const struct id_order_callbacks callbacks = {.pass = on_pass,
                                                    .watermark = on_watermark,
                                                    .behind = on_behind,
                                                    .low = on_low,
                                                    .whole = on_whole};

static void expect_told(const char *expected)
{
    buffer_append_char(&told, '\0');
    assert_string_equal(told.data, expected);
    buffer_clear(&told);
}

/* ---- input ---- */

static void begin_with(uint32_t shards, uint64_t wait_ms, size_t max_held_bytes)
{
    struct id_order_settings settings = {wait_ms, max_held_bytes, metrics};

    id_order_free(order);
    order = id_order_new(&settings, &callbacks, &told);
    assert_non_null(order);
    for (uint32_t shard = 0; shard < shards; shard++)
        id_order_begin_shard(order, shard, 0);
}

static struct event *make_event(uint32_t shard, uint64_t id, uint64_t previous)
{
    struct event *event = event_new_control(EVENT_POST, SL_SLICE("{}"));

    assert_non_null(event);
    event->id = id;
    event->previous = previous;
    event->shard = shard;
    event->received_us = now_us;
    return event;
}

static void take(uint32_t shard, uint64_t id, uint64_t previous)
{
    struct event *event = make_event(shard, id, previous);
    struct order_item item = {
        .kind = ORDER_EVENT, .shard = shard, .id = id, .previous = previous, .event = event};

    id_order_take(order, &item, now_us);
    event_unref(event);
}

static void take_other(enum order_kind kind, uint32_t shard, uint64_t id, uint64_t previous)
{
    struct order_item item = {.kind = kind, .shard = shard, .id = id, .previous = previous};

    id_order_take(order, &item, now_us);
}

static void take_rewound(uint32_t shard, uint64_t from, uint64_t to)
{
    struct order_item item = {
        .kind = ORDER_GAP, .shard = shard, .id = to, .previous = from, .reason = GAP_REWOUND};

    id_order_take(order, &item, now_us);
}

#define ALL        UINT64_MAX
#define BUT(shard) (~(UINT64_C(1) << (shard)))

static void end_round(uint64_t id, uint64_t complete)
{
    id_order_end_round(order, id, complete, now_us);
}

static void pass_ms(uint64_t ms)
{
    now_us += ms * 1000;
}

/* While rounds complete that change nothing. */
static void wait_ms(uint64_t ms, uint64_t id, uint64_t complete)
{
    end_round(id, complete);
    for (; ms > 250; ms -= 250) {
        pass_ms(250);
        end_round(id, complete);
    }
    pass_ms(ms);
}

static int begin(void **state)
{
    (void)state;
    board = metrics_board_new(1);
    metrics = metrics_slot(board, 0);
    begin_with(3, WAIT_MS, 1 << 20);
    return 0;
}

static int end(void **state)
{
    (void)state;
    id_order_free(order);
    order = NULL;
    assert_int_equal(metric_get(metrics, METRIC_ORDER_HELD_EVENTS), 0);
    assert_int_equal(metric_get(metrics, METRIC_ORDER_HELD_BYTES), 0);
    assert_int_equal(metric_get(metrics, METRIC_ORDER_BEHIND), 0);
    metrics_board_free(board);
    buffer_done(&told);
    return 0;
}

/* ---- order ---- */

static void test_one_shard_is_passed_through(void **state)
{
    (void)state;
    begin_with(1, WAIT_MS, 1 << 20);
    take(0, 5, 0);
    take_other(ORDER_PASS, 0, 6, 5);
    take_rewound(0, 3, 6);
    take(0, 4, 3);
    expect_told("5 pass:6 gap:6 4 ");
    assert_int_equal(id_order_first_held(order), 0);
    assert_false(id_order_is_unsure(order));
}

static void test_without_waiting_there_is_no_order_between_shards(void **state)
{
    (void)state;
    begin_with(3, 0, 1 << 20);
    take(1, 5, 0);
    take(0, 4, 0);
    end_round(9, ALL);
    expect_told("5 4 ");
    assert_false(id_order_is_unsure(order));
}

static void test_a_round_hands_on_what_is_held_in_order(void **state)
{
    (void)state;
    take(2, 5, 0);
    take(0, 6, 0);
    take(0, 9, 6);
    take(2, 7, 5);
    expect_told("");
    assert_true(id_order_first_held(order) > 0);
    assert_int_equal(metric_get(metrics, METRIC_ORDER_HELD_EVENTS), 4);
    end_round(8, ALL);
    expect_told("5 6 7 <=8 ");
    assert_true(id_order_first_held(order) > 0);
    end_round(9, ALL);
    expect_told("9 <=9 ");
    assert_int_equal(id_order_first_held(order), 0);
    assert_int_equal(metric_get(metrics, METRIC_EVENTS_LATE), 0);
}

static void test_events_of_all_shards_need_no_round(void **state)
{
    (void)state;
    take(0, 5, 0);
    take(1, 6, 0);
    take(2, 4, 0);
    expect_told("4 <=4 ");
    take(2, 9, 4);
    expect_told("5 <=5 ");
    take(0, 8, 5);
    expect_told("6 <=6 ");
}

static void test_the_first_round_tells_where_things_stand(void **state)
{
    (void)state;
    assert_true(id_order_is_unsure(order));
    end_round(8, ALL);
    expect_told("<=8 ");
    assert_false(id_order_is_unsure(order));
    end_round(8, ALL);
    end_round(7, ALL);
    expect_told("");
}

static void test_what_has_no_id_does_not_wait(void **state)
{
    (void)state;
    take(0, 5, 0);
    take(0, 0, 0);
    take_other(ORDER_PASS, 1, 0, 0);
    expect_told("0 pass:0 ");
}

static void test_refused_and_lost_events_and_gaps_have_their_place(void **state)
{
    (void)state;
    take_other(ORDER_MISS, 2, 5, 0);
    take_other(ORDER_GAP, 2, 7, 5);
    take_other(ORDER_PASS, 1, 6, 0);
    end_round(9, ALL);
    expect_told("miss:5 gap:7 pass:6 <=9 ");
}

/* A client that has 8 has been told about the gap. */
static void test_a_gap_comes_before_what_lies_in_it_of_the_others(void **state)
{
    (void)state;
    take(2, 5, 0);
    take(0, 8, 0);
    take_other(ORDER_GAP, 2, 20, 5);
    end_round(9, BUT(2));
    expect_told("5 gap:20 8 <=9 ");
}

static void test_a_shard_of_which_something_is_missing_holds_the_others(void **state)
{
    (void)state;
    take(0, 5, 0);
    end_round(8, BUT(1));
    expect_told("");
    take(1, 3, 0);
    expect_told("3 <=3 ");
    take(1, 4, 3);
    end_round(8, ALL);
    expect_told("4 <=4 5 <=8 ");
}

/* ---- shards that are behind ---- */

static void test_a_silent_shard_is_left_behind_and_becomes_whole(void **state)
{
    (void)state;
    take(1, 2, 0);
    take(0, 5, 0);
    wait_ms(WAIT_MS - 1, 8, BUT(1));
    expect_told("2 <=2 ");
    end_round(9, BUT(1));
    expect_told("");
    pass_ms(1);
    end_round(10, BUT(1));
    expect_told("behind(1,2,wait) 5 <=10 ");
    assert_int_equal(metric_get(metrics, METRIC_ORDER_BEHIND), 1);
    assert_true(id_order_is_unsure(order));
    take(1, 3, 2);
    take(0, 12, 5);
    take(1, 4, 3);
    end_round(12, BUT(1));
    expect_told("3! low(1,3) 4! low(1,4) 12 <=12 ");
    end_round(11, ALL);
    expect_told("low(1,11) ");
    end_round(13, ALL);
    expect_told("whole(1) <=13 ");
    assert_int_equal(metric_get(metrics, METRIC_EVENTS_LATE), 2);
    assert_int_equal(metric_get(metrics, METRIC_ORDER_LEFT_BEHIND), 1);
    assert_int_equal(metric_get(metrics, METRIC_ORDER_BEHIND), 0);
}

static void test_a_shard_that_is_behind_is_whole_when_a_gap_was_told(void **state)
{
    (void)state;
    take(1, 2, 0);
    take(0, 5, 0);
    wait_ms(WAIT_MS, 9, BUT(1));
    end_round(10, BUT(1));
    expect_told("2 <=2 behind(1,2,wait) 5 <=10 ");
    take_other(ORDER_GAP, 1, 20, 2);
    expect_told("gap:20 low(1,20) whole(1) ");
}

static void test_each_node_has_rounds_of_its_own(void **state)
{
    (void)state;
    take(0, 5, 0);
    end_round(8, BUT(1));
    expect_told("");
    end_round(6, 2);
    expect_told("5 <=6 ");
    take(0, 9, 5);
    end_round(8, 2);
    expect_told("<=8 ");
    for (uint64_t id = 10; id < 20; id++) { /* one shard is always the last, and continues */
        pass_ms(250);
        end_round(id, BUT(1));
        end_round(id - 2, 2);
    }
    expect_told("9 <=9 <=10 <=11 <=12 <=13 <=14 <=15 <=16 <=17 ");
    assert_int_equal(metric_get(metrics, METRIC_ORDER_LEFT_BEHIND), 0);
}

static void test_a_node_without_rounds_is_left_behind(void **state)
{
    (void)state;
    end_round(8, ALL);
    take(0, 9, 0);
    wait_ms(WAIT_MS - 1, 10, 1);
    expect_told("<=8 ");
    end_round(10, 4);
    pass_ms(1);
    end_round(11, 1);
    expect_told("behind(1,8,wait) 9 <=10 ");
    end_round(12, BUT(1));
    expect_told("<=12 ");
    end_round(13, 2);
    expect_told("whole(1) ");
}

static void test_a_shard_that_is_away_from_the_beginning_is_not_waited_for(void **state)
{
    (void)state;
    id_order_leave_behind(order, 1, now_us);
    id_order_leave_behind(order, 1, now_us);
    expect_told("behind(1,0,wait) ");
    take(0, 5, 0);
    end_round(8, BUT(1));
    expect_told("5 <=8 ");
    take(1, 3, 0);
    end_round(9, ALL);
    expect_told("3! low(1,3) whole(1) <=9 ");
    begin_with(3, 0, 1 << 20);
    id_order_leave_behind(order, 1, now_us);
    expect_told("");
}

static void test_a_shard_that_is_behind_is_whole_with_its_first_event_in_order(void **state)
{
    (void)state;
    take(0, 5, 0);
    wait_ms(WAIT_MS, 8, BUT(1));
    end_round(8, BUT(1));
    expect_told("behind(1,0,wait) 5 <=8 ");
    take(1, 9, 0);
    expect_told("whole(1) ");
    end_round(9, ALL);
    expect_told("9 <=9 ");
}

static void test_a_shard_that_moves_is_not_left_behind(void **state)
{
    (void)state;
    take(0, 50, 0);
    for (uint64_t id = 1; id < 9; id++) {
        wait_ms(WAIT_MS - 1, 60, BUT(1));
        take(1, id, id - 1);
    }
    expect_told("1 <=1 2 <=2 3 <=3 4 <=4 5 <=5 6 <=6 7 <=7 8 <=8 ");
}

/* There was no request for a day: that does not count as the shard's silence. */
static void test_waiting_begins_when_somebody_waits(void **state)
{
    (void)state;
    end_round(8, ALL);
    pass_ms(86400000);
    take(0, 9, 0);
    wait_ms(WAIT_MS - 1, 8, BUT(2));
    end_round(8, BUT(2));
    expect_told("<=8 ");
    end_round(9, ALL);
    expect_told("9 <=9 ");
}

/* Redis stopped, or the connection was interrupted: there was nothing that other gateways could
 * have received. */
static void test_while_redis_is_silent_nobody_is_left_behind(void **state)
{
    (void)state;
    take(0, 5, 0);
    end_round(8, BUT(1));
    pass_ms(WAIT_MS * 10);
    end_round(9, BUT(1));
    expect_told("");
    end_round(9, ALL);
    expect_told("5 <=9 ");
}

static void test_a_second_look_at_a_round_leaves_nobody_behind(void **state)
{
    (void)state;
    take(0, 5, 0);
    take(1, 9, 0);
    end_round(4, BUT(1));
    for (int i = 0; i < 50; i++) {
        pass_ms(WAIT_MS / 10);
        id_order_look_again(order, 4, BUT(1), now_us);
    }
    expect_told("<=4 ");
    end_round(6, BUT(1));
    expect_told("5 <=6 ");
    id_order_look_again(order, 6, ALL, now_us);
    expect_told("");
    end_round(9, ALL);
    expect_told("9 <=9 ");
}

/* Its clock was ahead, and is correct again. */
static void test_an_id_ahead_of_the_clock_does_not_wait_for_it(void **state)
{
    (void)state;
    take(1, 900, 0);
    for (uint64_t id = 1; id <= 9; id++) {
        end_round(id, ALL);
        pass_ms(WAIT_MS / 10);
    }
    take(2, 10, 0);
    end_round(10, ALL);
    expect_told("<=1 <=2 <=3 <=4 <=5 <=6 <=7 <=8 <=9 10 <=10 ");
    pass_ms(WAIT_MS / 10);
    end_round(11, ALL);
    expect_told("<=11 behind(0,11,wait) behind(2,11,wait) 900 <=900 ");
    take(2, 12, 10);
    take(1, 901, 900);
    take(0, 902, 0); /* the shards' clocks were aligned */
    expect_told("12! low(2,12) 901 <=901 whole(0) ");
    end_round(13, ALL);
    expect_told("low(2,13) ");
}

/* However many events always wait for the next round. */
static void test_steady_traffic_leaves_nobody_behind(void **state)
{
    (void)state;
    for (uint64_t id = 2; id < 3000; id += 2) {
        take(1, id, id - 2);
        take(1, id + 1, id);
        end_round(id, ALL);
        pass_ms(1);
    }
    assert_true(id_order_first_held(order) > 0);
    assert_int_equal(metric_get(metrics, METRIC_ORDER_LEFT_BEHIND), 0);
}

static void test_forever_is_forever(void **state)
{
    (void)state;
    begin_with(3, ID_ORDER_FOREVER, 1 << 20);
    take(0, 5, 0);
    wait_ms(100000, 8, BUT(1));
    end_round(9, BUT(1));
    expect_told("");
}

static void test_several_silent_shards_are_left_behind_together(void **state)
{
    (void)state;
    take(1, 3, 0);
    take(0, 5, 0);
    wait_ms(WAIT_MS, 9, BUT(1) & BUT(2));
    end_round(9, BUT(1) & BUT(2));
    expect_told("behind(1,0,wait) behind(2,0,wait) 3 low(1,3) 5 <=9 ");
    assert_int_equal(metric_get(metrics, METRIC_ORDER_BEHIND), 2);
    end_round(10, ALL);
    expect_told("whole(1) whole(2) <=10 ");
}

static void test_too_much_leaves_the_silent_behind_early(void **state)
{
    struct event *event = make_event(0, 1, 0);
    size_t bytes = event->bytes;

    (void)state;
    event_unref(event);
    begin_with(3, WAIT_MS, 4 * bytes);
    for (uint64_t id = 5; id < 9; id++)
        take(id % 2 ? 0 : 2, id, id < 7 ? 0 : id - 2);
    expect_told("behind(1,0,memory) 5 6 7 <=7 ");
    assert_int_equal(metric_get(metrics, METRIC_ORDER_LEFT_BEHIND_MEMORY), 1);
}

static void test_one_event_beyond_the_bound_is_handed_on(void **state)
{
    (void)state;
    begin_with(3, ID_ORDER_FOREVER, 10);
    take(1, 5, 0);
    expect_told("behind(0,0,memory) behind(2,0,memory) 5 <=5 ");
    take(0, 7, 0);
    expect_told("whole(0) behind(1,5,memory) 7 <=7 ");
}

/* ---- clocks and rewinds ---- */

static void test_an_id_below_the_watermark_is_late(void **state)
{
    (void)state;
    take(1, 2, 0);
    end_round(100, ALL);
    expect_told("2 <=100 ");
    take(1, 50, 2);                                  /* the clock was set back */
    expect_told("behind(1,49,late) 50! low(1,50) "); /* and not from 2 on */
    take(0, 101, 0);
    end_round(60, ALL);
    expect_told("low(1,60) ");
    take(1, 61, 50);
    expect_told("61! low(1,61) ");
    take(2, 102, 0);
    expect_told("101 <=101 ");
    end_round(103, ALL);
    expect_told("whole(1) 102 <=103 ");
}

/* It is below what is known of its shard, but nothing after it has passed. */
static void test_a_step_back_above_the_watermark_is_put_in_order(void **state)
{
    (void)state;
    end_round(90, BUT(0));
    take(1, 50, 0);
    take(2, 40, 0);
    expect_told("");
    end_round(60, ALL);
    expect_told("40 50 <=60 ");
}

static void test_after_a_rewind_events_are_late_until_they_have_caught_up(void **state)
{
    (void)state;
    take(1, 80, 0);
    end_round(100, ALL);
    take_rewound(1, 70, 80);
    take(1, 75, 70);
    take(1, 120, 75);
    take(0, 110, 0);
    expect_told("80 <=100 behind(1,70,late) gap:80 low(1,70) 75! low(1,75) whole(1) ");
    end_round(130, ALL);
    expect_told("110 120 <=130 ");
}

static void test_a_shard_keeps_its_order_through_a_rewind_of_what_is_held(void **state)
{
    (void)state;
    end_round(95, ALL);
    take(1, 100, 0);
    take(1, 101, 100);
    take_rewound(1, 90, 101);
    take(1, 94, 90);
    expect_told("<=95 behind(1,90,late) ");
    take(0, 102, 0);
    end_round(110, ALL);
    expect_told("100 low(1,100) 101 low(1,101) gap:101 low(1,90) 94! low(1,94) 102 <=110 ");
    end_round(111, ALL);
    expect_told("whole(1) <=111 ");
}

static void test_what_is_held_before_a_rewind_is_waited_for_no_longer_than_anything(void **state)
{
    (void)state;
    end_round(95, ALL);
    take(1, 100, 0);
    take_rewound(1, 90, 100);
    take(1, 94, 90);
    expect_told("<=95 behind(1,90,late) ");
    wait_ms(WAIT_MS, 110, BUT(0));
    end_round(111, BUT(0));
    expect_told("behind(0,95,wait) 100 low(1,100) gap:100 low(1,90) 94! low(1,94) <=111 ");
}

/* ---- failing allocations ---- */

static void test_without_memory_for_waiting_an_event_is_missed(void **state)
{
    struct event *event = make_event(0, 5, 0);
    struct order_item item = {.kind = ORDER_EVENT, .id = 5, .event = event};

    (void)state;
    buffer_append_str(&told, "room for what is told without memory");
    buffer_clear(&told);
    mem_fail_after(0);
    id_order_take(order, &item, now_us);
    mem_fail_never();
    expect_told("miss:5 ");
    assert_int_equal(event->refs, 1);
    event_unref(event);
    end_round(6, ALL);
    expect_told("<=6 ");
}

/* ---- random histories ---- */

enum { SHARDS = 6, EVENTS_MAX = 600 };

struct fact {
    uint32_t shard;
    uint64_t id, previous;
};

struct world {
    uint64_t clock_ms; /* the clock of Redis */
    uint64_t last[SHARDS], minted[SHARDS];
    struct fact facts[EVENTS_MAX]; /* in the order in which they were published */
    size_t count, heard, told;     /* `heard`: by the gateway, which may lack some of a shard */
    bool is_missing[SHARDS];       /* its facts are delayed, from `missed` on */
    struct fact missed[SHARDS][EVENTS_MAX];
    size_t missed_count[SHARDS];
    uint64_t watermark, low[SHARDS];
    bool is_behind[SHARDS], steps, stalls;
    uint64_t last_told[SHARDS], last_in_order;
    size_t told_late;
};

static struct world world;

static uint64_t claimed(uint32_t shard)
{
    return world.is_behind[shard] ? world.low[shard] : world.watermark;
}

static void world_pass(void *context, const struct order_item *item)
{
    (void)context;
    assert_int_equal(item->previous, world.last_told[item->shard]); /* none missing, none twice */
    assert_true(item->id > claimed(item->shard));
    assert_int_equal(item->event->is_late, item->id <= world.watermark);
    if (!item->event->is_late) {
        assert_true(item->id > world.last_in_order);
        world.last_in_order = item->id;
    }
    world.last_told[item->shard] = item->id;
    world.told++;
    world.told_late += item->event->is_late;
}

/* As long as no clock is set back, nothing that was published is missing below what is claimed. */
static void check_claims(void)
{
    for (size_t i = 0; i < world.count && !world.steps; i++) {
        const struct fact *fact = &world.facts[i];

        assert_true(fact->id > claimed(fact->shard) || fact->id <= world.last_told[fact->shard]);
    }
}

static void world_watermark(void *context, uint64_t id)
{
    (void)context;
    assert_true(id > world.watermark);
    world.watermark = id;
    check_claims();
}

static void world_behind(void *context, uint32_t shard, uint64_t low, enum order_behind why)
{
    (void)context;
    (void)why;
    assert_false(world.is_behind[shard]);
    world.is_behind[shard] = true;
    world.low[shard] = low;
    check_claims();
}

static void world_low(void *context, uint32_t shard, uint64_t low)
{
    (void)context;
    assert_true(world.is_behind[shard] && (low > world.low[shard] || world.steps));
    world.low[shard] = low;
    check_claims();
}

static void world_whole(void *context, uint32_t shard)
{
    (void)context;
    assert_true(world.is_behind[shard]);
    world.is_behind[shard] = false;
    check_claims();
}

static const struct id_order_callbacks world_callbacks = {.pass = world_pass,
                                                          .watermark = world_watermark,
                                                          .behind = world_behind,
                                                          .low = world_low,
                                                          .whole = world_whole};

/* Mints like the scripts do: from the clock, and above the last id of the shard. */
static void publish(uint32_t shard)
{
    uint64_t id = world.clock_ms * 4096 + shard * 64;
    struct fact *fact = &world.facts[world.count++];

    if (id <= world.minted[shard])
        id = world.minted[shard] % 64 < 63 ? world.minted[shard] + 1
                                           : (world.minted[shard] / 4096 + 1) * 4096 + shard * 64;
    *fact = (struct fact){shard, id, world.minted[shard]};
    world.minted[shard] = id;
}

static void hear(const struct fact *fact)
{
    if (world.is_missing[fact->shard])
        world.missed[fact->shard][world.missed_count[fact->shard]++] = *fact;
    else
        take(fact->shard, fact->id, fact->previous);
}

static void repair(uint32_t shard)
{
    world.is_missing[shard] = false;
    for (size_t i = 0; i < world.missed_count[shard]; i++)
        hear(&world.missed[shard][i]);
    world.missed_count[shard] = 0;
}

/* When the node of `shards` answers PING, everything that it published before TIME has arrived. */
static void end_round_of_node(uint64_t id, uint64_t shards)
{
    uint64_t complete = 0;

    while (world.heard < world.count)
        hear(&world.facts[world.heard++]);
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        complete |= (uint64_t)!world.is_missing[shard] << shard;
    id_order_end_round(order, id, complete & shards, now_us);
}

static void end_round_of_world(uint64_t id)
{
    end_round_of_node(id, ALL);
}

/* Some more is published between TIME and PING. */
static void random_round_of_node(uint64_t shards)
{
    uint64_t id = world.clock_ms * 4096 - 1;

    for (uint32_t n = draw(3); n > 0 && world.count < EVENTS_MAX; n--)
        publish(draw(SHARDS));
    end_round_of_node(id, shards);
}

/* A round of one node that has all shards, or of two nodes, one after the other. */
static void random_round(void)
{
    uint64_t shards = draw(2) ? ALL : draw(1 << SHARDS);

    random_round_of_node(shards);
    world.clock_ms += draw(2);
    if (shards != ALL)
        random_round_of_node(~shards);
}

static void random_step(void)
{
    uint32_t shard = draw(SHARDS);

    switch (draw(12)) {
    case 0:
        if (world.stalls)
            world.is_missing[shard] = true;
        break;
    case 1:
        repair(shard);
        break;
    case 2:
        if (world.steps && draw(10) == 0)
            world.clock_ms -= draw(50);
        break;
    case 3:
    case 4:
        random_round();
        break;
    case 5:
        if (world.heard < world.count)
            hear(&world.facts[world.heard++]);
        break;
    case 6:
        world.clock_ms += 1 + draw(3);
        pass_ms(draw(400));
        break;
    default:
        if (draw(2) == 0)
            world.clock_ms += draw(2);
        publish(shard);
    }
}

static void live_through(bool stalls, bool steps, size_t max_held_bytes)
{
    struct id_order_settings settings = {WAIT_MS, max_held_bytes, metrics};

    world = (struct world){.clock_ms = 1000, .stalls = stalls, .steps = steps};
    id_order_free(order);
    order = id_order_new(&settings, &world_callbacks, NULL);
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        id_order_begin_shard(order, shard, 0);
    while (world.count < EVENTS_MAX)
        random_step();
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        repair(shard);
    world.clock_ms += 1000;
    end_round_of_world(world.clock_ms * 4096 - 1);
    end_round_of_world(world.clock_ms * 4096);
    assert_int_equal(id_order_first_held(order), 0);
    assert_false(id_order_is_unsure(order));
    assert_int_equal(world.told, world.count);
    assert_true(steps || world.last_in_order <= world.watermark);
}

static void test_random_histories_without_faults_are_in_exact_order(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        live_through(false, false, 1 << 20);
        assert_int_equal(world.told_late, 0);
    }
    assert_int_equal(metric_get(metrics, METRIC_ORDER_LEFT_BEHIND), 0);
}

static void test_random_histories_with_stalls_keep_their_claims(void **state)
{
    size_t late = 0;

    (void)state;
    for (int i = 0; i < 200; i++) {
        live_through(true, false, 1 << 20);
        late += world.told_late;
    }
    assert_true(late > 100);
    for (int i = 0; i < 100; i++)
        live_through(true, false, 2000);
    assert_true(metric_get(metrics, METRIC_ORDER_LEFT_BEHIND_MEMORY) > 100);
}

static void test_random_histories_whose_clock_steps_break_no_claim_untold(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++)
        live_through(true, true, 1 << 20);
    assert_true(metric_get(metrics, METRIC_ORDER_LEFT_BEHIND_LATE) > 100);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_shard_is_passed_through),
        TEST(test_without_waiting_there_is_no_order_between_shards),
        TEST(test_a_round_hands_on_what_is_held_in_order),
        TEST(test_events_of_all_shards_need_no_round),
        TEST(test_the_first_round_tells_where_things_stand),
        TEST(test_what_has_no_id_does_not_wait),
        TEST(test_refused_and_lost_events_and_gaps_have_their_place),
        TEST(test_a_gap_comes_before_what_lies_in_it_of_the_others),
        TEST(test_a_shard_of_which_something_is_missing_holds_the_others),
        TEST(test_a_silent_shard_is_left_behind_and_becomes_whole),
        TEST(test_a_shard_that_is_behind_is_whole_when_a_gap_was_told),
        TEST(test_each_node_has_rounds_of_its_own),
        TEST(test_a_node_without_rounds_is_left_behind),
        TEST(test_a_shard_that_is_away_from_the_beginning_is_not_waited_for),
        TEST(test_a_shard_that_is_behind_is_whole_with_its_first_event_in_order),
        TEST(test_a_shard_that_moves_is_not_left_behind),
        TEST(test_waiting_begins_when_somebody_waits),
        TEST(test_while_redis_is_silent_nobody_is_left_behind),
        TEST(test_a_second_look_at_a_round_leaves_nobody_behind),
        TEST(test_an_id_ahead_of_the_clock_does_not_wait_for_it),
        TEST(test_steady_traffic_leaves_nobody_behind),
        TEST(test_forever_is_forever),
        TEST(test_several_silent_shards_are_left_behind_together),
        TEST(test_too_much_leaves_the_silent_behind_early),
        TEST(test_one_event_beyond_the_bound_is_handed_on),
        TEST(test_an_id_below_the_watermark_is_late),
        TEST(test_a_step_back_above_the_watermark_is_put_in_order),
        TEST(test_after_a_rewind_events_are_late_until_they_have_caught_up),
        TEST(test_a_shard_keeps_its_order_through_a_rewind_of_what_is_held),
        TEST(test_what_is_held_before_a_rewind_is_waited_for_no_longer_than_anything),
        TEST(test_without_memory_for_waiting_an_event_is_missed),
        TEST(test_random_histories_without_faults_are_in_exact_order),
        TEST(test_random_histories_with_stalls_keep_their_claims),
        TEST(test_random_histories_whose_clock_steps_break_no_claim_untold),
    };

    draw_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
