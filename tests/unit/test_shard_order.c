/* test_shard_order.c - messages and batches of the log in scripted and in random orders. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "gateway/intake/shard_order.h"
#include "src/model/id.h"
#include "tests/support/cmocka_all.h"

enum { HELD_BYTES = 4096 };

static struct metrics_board *board;
static struct metrics *metrics;
static struct buffer told; /* the callbacks, a word each */
static struct shard_order *order;

static void on_event(void *context, const struct live_message *message)
{
    assert_ptr_equal(context, &told);
    assert_int_equal(message->shard, 0);
    if (message->body.size > 2 && message->body.size < 20)
        buffer_append_format(&told, "%" PRIu64 "%.*s ", message->id, SL_SLICE_ARG(message->body));
    else
        buffer_append_format(&told, "%" PRIu64 " ", message->id);
}

static void on_gap(void *context, const struct gap *gap)
{
    assert_ptr_equal(context, &told);
    assert_int_equal(gap->shard, 0);
    assert_true(gap->from < gap->to);
    buffer_append_format(&told, "%s(%" PRIu64 ",%" PRIu64 "] ", gap_reason_name(gap->reason),
                         gap->from, gap->to);
}

static const struct shard_order_callbacks callbacks = {on_event, on_gap};

static void begin_at(uint64_t log_end)
{
    struct shard_order_settings settings = {0, log_end, HELD_BYTES, metrics};

    shard_order_free(order);
    order = shard_order_new(&settings, &callbacks, &told);
    assert_non_null(order);
}

static int begin(void **state)
{
    (void)state;
    board = metrics_board_new(1);
    metrics = metrics_slot(board, 0);
    begin_at(10);
    return 0;
}

static int end(void **state)
{
    (void)state;
    shard_order_free(order);
    order = NULL;
    assert_int_equal(metric_get(metrics, METRIC_HELD_BYTES), 0);
    metrics_board_free(board);
    buffer_done(&told);
    return 0;
}

static bool take_json(uint64_t id, uint64_t previous, const char *json)
{
    char *copy = mem_copy(json, strlen(json)); /* freed when the function returns */
    struct live_message message = {
        .id = id, .previous = previous, .received_us = 99, .body = sl_slice(copy, strlen(json))};
    bool is_wanted = shard_order_take(order, &message);

    mem_free(copy);
    return is_wanted;
}

static bool take(uint64_t id, uint64_t previous)
{
    return take_json(id, previous, "{}");
}

/* A batch of entries, each of which names the one before; `first_previous` is what the first one
 * names. */
static void batch_of(uint64_t after, uint64_t to, bool is_full, uint64_t first_previous,
                     const uint64_t *ids, size_t count)
{
    struct sl_event_log_entry entries[16];
    struct log_batch batch = {after, to, entries, count, is_full};

    for (size_t i = 0; i < count; i++)
        entries[i] =
            (struct sl_event_log_entry){ids[i], i ? ids[i - 1] : first_previous, SL_SLICE("{}")};
    shard_order_batch(order, &batch, 99);
}

#define IDS(...)                                                                                   \
    (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)

/* The callbacks since the last call. */
static void expect_told(const char *expected)
{
    buffer_append_char(&told, '\0');
    assert_string_equal(told.data, expected);
    buffer_clear(&told);
}

static void expect_wants(uint64_t after, uint64_t to)
{
    uint64_t wanted_after, wanted_to;

    assert_true(shard_order_wants(order, &wanted_after, &wanted_to));
    assert_int_equal(wanted_after, after);
    assert_int_equal(wanted_to, to);
}

static void expect_wants_nothing(void)
{
    uint64_t after, to;

    assert_false(shard_order_wants(order, &after, &to));
    assert_int_equal(metric_get(metrics, METRIC_HELD_BYTES), 0);
}

/* ---- live ---- */

static void test_messages_in_order_pass_at_once(void **state)
{
    (void)state;
    assert_false(take(11, 10));
    assert_false(take_json(15, 11, "{\"a\"}"));
    assert_false(take(16, 15));
    expect_told("11 15{\"a\"} 16 ");
    assert_int_equal(shard_order_last(order), 16);
    assert_int_equal(metric_get(metrics, METRIC_EVENT_GAPS), 0);
}

/* ---- started while the log was unreadable ---- */

enum { OTHER = SL_ID_PER_SHARD, AFTER = SL_ID_PER_MS }; /* an id of shard 1, one of shard 0 */

static void test_what_came_while_the_log_was_away_is_wanted(void **state)
{
    (void)state;
    begin_at(OTHER);
    shard_order_resume(order, AFTER + 1);
    expect_wants(OTHER, AFTER + 1);
    assert_true(take(AFTER + 2, AFTER + 1));
    batch_of(OTHER, AFTER + 1, false, 20, IDS(AFTER, AFTER + 1));
    expect_told("4096 4097 4098 ");
    assert_int_equal(metric_get(metrics, METRIC_EVENT_REWINDS), 0);
}

static void test_if_nothing_came_it_begins_with_its_next_event(void **state)
{
    (void)state;
    begin_at(OTHER);
    shard_order_resume(order, 20);
    expect_wants_nothing();
    assert_false(take(AFTER, 20));
    expect_told("4096 ");
    begin_at(OTHER);
    shard_order_resume(order, 0);
    assert_false(take(AFTER, 0));
    expect_told("4096 ");
    assert_int_equal(metric_get(metrics, METRIC_EVENT_REWINDS), 0);
}

static void test_a_look_at_the_log_may_come_before_its_end_is_told(void **state)
{
    (void)state;
    begin_at(OTHER);
    batch_of(OTHER, SL_ID_MAX, false, 0, NULL, 0);
    batch_of(OTHER, SL_ID_MAX, false, 20, IDS(AFTER));
    shard_order_resume(order, AFTER);
    expect_wants_nothing();
    assert_false(take(AFTER + 1, AFTER));
    expect_told("4096 4097 ");
}

static void test_what_the_log_has_lost_meanwhile_is_a_gap(void **state)
{
    (void)state;
    begin_at(OTHER);
    shard_order_resume(order, AFTER + 9);
    batch_of(OTHER, AFTER + 9, false, AFTER + 5, IDS(AFTER + 9));
    expect_told("retention(64,4101] 4105 ");
}

/* A new intake process that starts while the shard is unavailable. */
static void test_a_guess_tells_nothing_to_who_knows_more(void **state)
{
    (void)state;
    shard_order_resume(order, OTHER);
    expect_wants_nothing();
    shard_order_resume(order, 10);
    expect_wants_nothing();
    assert_false(take(AFTER, 10));
    expect_told("4096 ");
}

static void test_empty_log_begins_with_its_first_event(void **state)
{
    (void)state;
    begin_at(0);
    assert_false(take(11, 0));
    assert_false(take(12, 11));
    expect_told("11 12 ");
}

static void test_duplicates_are_dropped(void **state)
{
    (void)state;
    take(11, 10);
    take(12, 11);
    assert_false(take(12, 11));
    assert_false(take(11, 10));
    assert_false(take(10, 9)); /* where the log ended */
    take(13, 12);
    expect_told("11 12 13 ");
    assert_int_equal(metric_get(metrics, METRIC_EVENTS_DUPLICATE), 3);
}

static void test_plain_messages_wait_for_nobody(void **state)
{
    (void)state;
    take(0, 0);
    take(13, 12);
    take(0, 0);
    expect_told("0 0 ");
}

/* ---- missed ---- */

static void test_gap_is_filled_from_the_log_before_its_message(void **state)
{
    (void)state;
    assert_true(take_json(14, 13, "{\"d\"}"));
    assert_true(take_json(15, 14, "{\"e\"}"));
    expect_told("");
    expect_wants(10, 13);
    batch_of(10, 13, false, 10, IDS(11, 12, 13));
    expect_told("11 12 13 14{\"d\"} 15{\"e\"} ");
    expect_wants_nothing();
    assert_false(take(16, 15));
    expect_told("16 ");
    assert_int_equal(metric_get(metrics, METRIC_EVENT_GAPS), 1);
    assert_int_equal(metric_get(metrics, METRIC_EVENTS_REPAIRED), 3);
}

static void test_gap_is_filled_batch_by_batch(void **state)
{
    (void)state;
    take(20, 16);
    batch_of(10, 16, true, 10, IDS(11, 12));
    expect_told("11 12 ");
    expect_wants(12, 16);
    batch_of(12, 16, true, 12, IDS(14, 15));
    expect_wants(15, 16);
    batch_of(15, 16, false, 15, IDS(16));
    expect_told("14 15 16 20 ");
    expect_wants_nothing();
}

static void test_gap_among_what_is_held_back_is_filled_too(void **state)
{
    (void)state;
    take(13, 12);
    take(20, 15);
    take(21, 20);
    batch_of(10, 12, false, 10, IDS(12));
    expect_told("12 13 ");
    expect_wants(13, 15);
    batch_of(13, 15, false, 13, IDS(14, 15));
    expect_told("14 15 20 21 ");
    expect_wants_nothing();
    assert_int_equal(metric_get(metrics, METRIC_EVENT_GAPS), 2);
}

static void test_events_in_the_log_and_held_back_are_passed_once(void **state)
{
    (void)state;
    take(13, 12);
    take(14, 13);
    take(13, 12);
    batch_of(10, 12, false, 10, IDS(11, 12, 13, 14)); /* more than requested */
    take(14, 13);
    take(15, 14);
    expect_told("11 12 13 14 15 ");
    assert_int_equal(metric_get(metrics, METRIC_EVENTS_REPAIRED), 4);
}

static void test_what_the_log_has_lost_is_told_where_it_was(void **state)
{
    (void)state;
    take(20, 19);
    batch_of(10, 19, false, 14, IDS(15, 17, 18)); /* 11 to 14 are missing, and 19 */
    expect_wants(17, 20);
    batch_of(17, 20, false, 19, IDS(20));
    expect_told("retention(10,14] 15 17 18 retention(18,19] 20 ");
    take(30, 29);
    batch_of(20, 29, false, 0, NULL, 0);
    expect_wants(19, 30);
    batch_of(19, 30, false, 0, NULL, 0);
    expect_told("retention(20,29] 30 ");
    take(29, 28); /* has passed already */
    expect_told("");
    expect_wants_nothing();
}

static void test_stretch_that_cannot_be_read_is_told(void **state)
{
    (void)state;
    take(14, 13);
    batch_of(10, 13, true, 10, IDS(11));
    shard_order_give_up(order);
    expect_told("11 redis(11,13] 14 ");
    expect_wants_nothing();
    shard_order_give_up(order);
    expect_told("");
}

static void test_lost_connection_shows_by_the_end_of_the_log(void **state)
{
    (void)state;
    take(11, 10);
    shard_order_resume(order, 11);
    expect_wants_nothing();
    shard_order_resume(order, 13);
    expect_wants(11, 13);
    take(14, 13);
    shard_order_resume(order, 20); /* lost again before it was repaired */
    expect_wants(11, 13);
    batch_of(11, 13, false, 11, IDS(13));
    expect_told("11 13 14 ");
    expect_wants_nothing();
}

static void test_events_after_the_last_one_of_a_quiet_shard_are_passed(void **state)
{
    (void)state;
    batch_of(10, SL_ID_MAX, false, 0, NULL, 0);
    assert_int_equal(metric_get(metrics, METRIC_EVENT_GAPS), 0);
    batch_of(10, SL_ID_MAX, false, 10, IDS(11, 12));
    expect_told("11 12 ");
    expect_wants_nothing();
    assert_int_equal(metric_get(metrics, METRIC_EVENT_GAPS), 1);
    take(11, 10); /* late, not lost */
    take(12, 11);
    take(13, 12);
    expect_told("13 ");
}

static void test_quiet_shard_with_much_behind_it_is_read_to_the_end(void **state)
{
    (void)state;
    batch_of(10, SL_ID_MAX, true, 10, IDS(11, 12));
    expect_wants(12, SL_ID_MAX);
    take(15, 14);
    batch_of(12, SL_ID_MAX, true, 12, IDS(13, 14));
    expect_wants(14, SL_ID_MAX);
    batch_of(14, SL_ID_MAX, false, 14, IDS(15));
    expect_told("11 12 13 14 15 ");
    expect_wants_nothing();
    assert_int_equal(metric_get(metrics, METRIC_EVENT_GAPS), 1);
}

static void test_batch_asked_for_too_early_proves_nothing_lost(void **state)
{
    (void)state;
    take(14, 13); /* while the quiet shard was being looked up, with nothing new yet */
    batch_of(10, SL_ID_MAX, false, 0, NULL, 0);
    expect_wants(10, 13);
    expect_told("");
    batch_of(10, 13, false, 10, IDS(13));
    expect_told("13 14 ");
}

static void test_batch_that_comes_late_repeats_nothing(void **state)
{
    (void)state;
    take(11, 10);
    take(12, 11);
    batch_of(10, SL_ID_MAX, false, 10, IDS(11, 12));
    batch_of(10, SL_ID_MAX, false, 10, IDS(11));
    take(13, 12);
    expect_told("11 12 13 ");
    assert_int_equal(metric_get(metrics, METRIC_EVENT_GAPS), 0);
}

static void test_reading_may_run_far_ahead_of_the_channel(void **state)
{
    enum { AHEAD = 5000 };

    (void)state;
    for (uint64_t id = 10; id < AHEAD; id++)
        batch_of(id, SL_ID_MAX, true, id, IDS(id + 1));
    batch_of(AHEAD, SL_ID_MAX, false, 0, NULL, 0);
    expect_wants_nothing();
    buffer_clear(&told);
    for (uint64_t id = 11; id <= AHEAD; id++)
        assert_false(take(id, id - 1));
    take(AHEAD + 1, AHEAD);
    expect_told("5001 ");
    assert_int_equal(metric_get(metrics, METRIC_EVENT_REWINDS), 0);
}

/* ---- bounds ---- */

static void test_more_than_may_be_held_is_read_from_the_log(void **state)
{
    char json[1000];

    (void)state;
    memset(json, 'x', sizeof(json) - 1);
    json[sizeof(json) - 1] = '\0';
    take(12, 11);
    for (uint64_t id = 13; id < 17; id++) /* the last one does not fit */
        take_json(id, id - 1, json);
    assert_int_equal(metric_get(metrics, METRIC_HELD_BYTES), 0);
    expect_wants(10, 16);
    take(17, 16);
    assert_in_range(metric_get(metrics, METRIC_HELD_BYTES), 1, HELD_BYTES);
    batch_of(10, 11, false, 10, IDS(11)); /* requested before */
    expect_wants(11, 16);
    batch_of(11, 16, false, 11, IDS(12, 13, 14, 15, 16));
    expect_told("11 12 13 14 15 16 17 ");
    expect_wants_nothing();
}

static void test_duplicate_that_does_not_fit_drops_nothing_for_good(void **state)
{
    char json[1000];

    (void)state;
    memset(json, 'x', sizeof(json) - 1);
    json[sizeof(json) - 1] = '\0';
    take(12, 11);
    for (uint64_t id = 13; id < 16; id++)
        take_json(id, id - 1, json);
    take_json(13, 12, json);
    expect_wants(10, 15);
}

static void test_event_too_big_to_be_held_is_read_from_the_log(void **state)
{
    char json[HELD_BYTES + 1];

    (void)state;
    memset(json, 'x', sizeof(json) - 1);
    json[sizeof(json) - 1] = '\0';
    take_json(12, 11, json);
    expect_wants(10, 12);
    batch_of(10, 12, false, 10, IDS(11, 12));
    expect_told("11 12 ");
}

static void test_without_memory_nothing_is_lost_or_late(void **state)
{
    struct shard_order_settings settings = {0, 10, HELD_BYTES, metrics};

    (void)state;
    mem_fail_after(0);
    assert_null(shard_order_new(&settings, &callbacks, &told));
    mem_fail_after(1); /* the copy of take() */
    take(12, 11);
    assert_true(mem_failed());
    mem_fail_never();
    expect_wants(10, 12);
    take(13, 12);
    batch_of(10, 12, false, 10, IDS(11, 12));
    expect_told("11 12 13 ");
}

/* ---- rewinds ---- */

static void test_id_below_the_last_one_that_is_new_rewinds(void **state)
{
    (void)state;
    take(16, 10);
    assert_true(take(12, 10));
    take(13, 12);
    take(16, 10);
    take(17, 13);
    expect_wants(10, 16);
    batch_of(10, 16, false, 10, IDS(12, 13));
    expect_told("16 rewound(10,16] 12 13 17 ");
    assert_int_equal(metric_get(metrics, METRIC_EVENT_REWINDS), 1);
    assert_int_equal(metric_get(metrics, METRIC_EVENT_GAPS), 0);
}

static void test_new_id_after_a_lost_tail_rewinds(void **state)
{
    (void)state;
    take(11, 10);
    take(12, 11);
    take(14, 11);
    expect_wants(11, 14);
    batch_of(11, 14, false, 11, IDS(14));
    expect_told("11 12 rewound(11,12] 14 ");
    assert_int_equal(metric_get(metrics, METRIC_EVENT_REWINDS), 1);
}

static void test_lost_tail_shows_in_the_log_too(void **state)
{
    (void)state;
    take(11, 10);
    take(12, 11);
    take(20, 15);
    batch_of(12, 15, false, 11, IDS(14, 15)); /* 12 is lost; 14 followed 11 */
    expect_told("11 12 rewound(11,12] 14 15 20 ");
    assert_int_equal(metric_get(metrics, METRIC_EVENT_REWINDS), 1);
    expect_wants_nothing();
}

static void test_what_was_missed_below_the_last_id_is_found(void **state)
{
    (void)state;
    take(11, 10);
    take(20, 11);
    take(21, 20); /* 20 and 21 are lost; 12 and 13 replace them, not received */
    assert_true(take(14, 13));
    expect_wants(10, 21);
    batch_of(21, SL_ID_MAX, false, 14, IDS(30)); /* was in flight; begins too late */
    expect_wants(10, 21);
    batch_of(10, 21, false, 10, IDS(11, 12, 13, 14));
    expect_told("11 20 21 rewound(11,21] 12 13 14 ");
    expect_wants_nothing();
    assert_int_equal(metric_get(metrics, METRIC_EVENT_REWINDS), 1);
    take(15, 14);
    expect_told("15 ");
}

static void test_rewound_log_shows_when_hearing_begins_again(void **state)
{
    (void)state;
    take(11, 10);
    take(20, 11);
    shard_order_resume(order, 11); /* nothing new yet */
    expect_wants_nothing();
    shard_order_resume(order, 12);
    expect_wants(10, 20);
    batch_of(10, 20, false, 10, IDS(11, 12));
    expect_told("11 20 rewound(11,20] 12 ");
    expect_wants_nothing();
}

static void test_rewound_log_that_was_trimmed_up_to_what_passed_has_no_gap(void **state)
{
    (void)state;
    take(11, 10);
    take(12, 11);
    take(20, 12);
    take(15, 14);
    batch_of(10, 20, false, 12, IDS(13, 14, 15));
    expect_told("11 12 20 rewound(12,20] 13 14 15 ");
}

static void test_new_id_among_those_read_from_the_log_rewinds(void **state)
{
    (void)state;
    batch_of(10, SL_ID_MAX, false, 10, IDS(11, 15));
    take(16, 15);
    take(13, 11);
    batch_of(11, 16, false, 11, IDS(13));
    expect_told("11 15 16 rewound(11,16] 13 ");
}

static void test_rewound_log_that_is_trimmed_is_reported(void **state)
{
    (void)state;
    take(11, 10);
    take(20, 11);
    take(14, 13);
    batch_of(10, 20, false, 0, NULL, 0);
    expect_told("11 20 retention(10,13] rewound(13,20] 14 ");
    expect_wants_nothing();
}

static void test_what_a_former_master_says_is_dropped(void **state)
{
    (void)state;
    take(11, 10);
    take(12, 11);
    take(14, 11); /* 12 has not arrived */
    take(15, 14);
    take(17, 12);
    expect_wants(11, 14);
    batch_of(11, 14, false, 11, IDS(12));
    expect_wants(12, 14); /* which 15 names */
    batch_of(12, 14, false, 0, NULL, 0);
    expect_wants(11, 15);
    batch_of(11, 15, false, 11, IDS(12));
    expect_told("11 12 17 ");
    expect_wants_nothing();
    assert_int_equal(metric_get(metrics, METRIC_EVENTS_STALE), 2);
    assert_int_equal(metric_get(metrics, METRIC_EVENT_REWINDS), 0);
}

static void test_what_a_former_master_said_is_told_once(void **state)
{
    (void)state;
    take(11, 10);
    take(20, 11); /* nobody can know that it comes from the previous master */
    take(12, 11);
    batch_of(11, 20, false, 11, IDS(12));
    expect_told("11 20 rewound(11,20] 12 ");
    take(21, 20);
    take(14, 13);
    expect_wants(11, 21);
    batch_of(11, 21, false, 11, IDS(12, 13));
    expect_told("13 14 ");
    expect_wants_nothing();
    assert_int_equal(metric_get(metrics, METRIC_EVENTS_STALE), 1);
    assert_int_equal(metric_get(metrics, METRIC_EVENT_REWINDS), 1);
}

static void test_two_logs_and_none_can_be_read(void **state)
{
    (void)state;
    take(11, 10);
    take(20, 11);
    take(12, 11);
    shard_order_give_up(order);
    expect_told("11 20 rewound(11,20] 12 ");
    take(21, 20);
    shard_order_give_up(order);
    expect_told("redis(12,20] 21 ");
}

static void test_ids_are_remembered_for_a_while(void **state)
{
    (void)state;
    for (uint64_t id = 11; id <= 3000; id++)
        assert_false(take(id, id - 1));
    buffer_clear(&told);
    take(2000, 1999);
    expect_told("");
    take(11, 10); /* that it was lost is forgotten */
    expect_wants(1977, 3000);
    batch_of(1977, 3000, false, 2999, IDS(3000));
    expect_told("");
    expect_wants_nothing();
}

/* ---- a random history ---- */

/* The complete log: ids, and whether each was trimmed. */
enum { HISTORY = 400, BATCH = 5 };

static uint64_t history[HISTORY + 1];

/* An id of the same shard. */
static uint64_t some_id_after(uint64_t id)
{
    id += 1 + (uint64_t)(rand() % 3);
    return sl_id_shard(id) == 0 ? id : (id / SL_ID_PER_MS + 1) * SL_ID_PER_MS;
}

static size_t entries_of(uint64_t after, uint64_t to, size_t written, size_t trimmed,
                         struct sl_event_log_entry *entries)
{
    size_t count = 0;

    for (size_t i = trimmed + 1; i <= written && count < BATCH; i++) {
        if (history[i] > after && history[i] <= to)
            entries[count++] =
                (struct sl_event_log_entry){history[i], history[i - 1], SL_SLICE("{}")};
    }
    return count;
}

/* Messages are lost, repeated and delayed at random; batches too; the log is sometimes trimmed. In
 * the end each event has passed once and in order, or is in a gap that was reported. */
static void run_history(unsigned seed)
{
    size_t written = 0, trimmed = 0;
    struct sl_event_log_entry entries[BATCH];
    struct log_batch batch = {.entries = entries};
    bool is_asked = false;
    uint64_t after, to;
    char *at;

    srand(seed);
    history[0] = 10;
    begin_at(10);
    while (written < HISTORY || shard_order_last(order) < history[HISTORY]) {
        switch (rand() % 8) {
        case 0:
        case 1:
        case 2:
        case 3: /* an event, usually received */
            if (written == HISTORY)
                break;
            written++;
            history[written] = some_id_after(history[written - 1]);
            for (int times = rand() % 6 ? 1 : rand() % 3; times > 0; times--)
                take(history[written], history[written - 1]);
            break;
        case 4: /* a batch is requested: the log answers as of now */
            if (is_asked)
                break;
            after = shard_order_last(order);
            to = SL_ID_MAX;
            shard_order_wants(order, &after, &to);
            batch.after = after;
            batch.to = to;
            batch.count = entries_of(after, to, written, trimmed, entries);
            batch.is_full = batch.count == BATCH;
            is_asked = true;
            break;
        case 5:
        case 6: /* and arrives */
            if (is_asked)
                shard_order_batch(order, &batch, 99);
            is_asked = false;
            break;
        case 7:
            if (rand() % 40 == 0 && written > trimmed + 3)
                trimmed = written - (size_t)(rand() % 3);
            if (rand() % 4 == 0)
                shard_order_resume(order, history[written]);
            break;
        }
    }
    at = (char *)buffer_str(&told);
    for (size_t i = 1; i <= HISTORY;) {
        uint64_t id, from;
        int size = 0;

        if (sscanf(at, "%" SCNu64 " %n", &id, &size) == 1 && size > 0) {
            if (id != history[i])
                fail_msg("seed %u: %" PRIu64 " instead of %" PRIu64, seed, id, history[i]);
            i++;
        } else if (sscanf(at, "retention(%" SCNu64 ",%" SCNu64 "] %n", &from, &id, &size) == 2) {
            if (from != history[i - 1])
                fail_msg("seed %u: gap from %" PRIu64 " behind %" PRIu64, seed, from,
                         history[i - 1]);
            for (; i <= HISTORY && history[i] <= id; i++)
                assert_true(i <= trimmed);
        } else {
            fail_msg("seed %u: '%.40s'", seed, at);
        }
        at += size;
    }
    assert_string_equal(at, "");
    buffer_clear(&told);
}

static void test_any_history_arrives_in_order_and_whole(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 300; seed++)
        run_history(seed);
    assert_int_equal(metric_get(metrics, METRIC_EVENT_REWINDS), 0);
    assert_true(metric_get(metrics, METRIC_EVENTS_REPAIRED) > 1000);
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, begin, end)
    static const struct CMUnitTest tests[] = {
        test(test_messages_in_order_pass_at_once),
        test(test_a_guess_tells_nothing_to_who_knows_more),
        test(test_empty_log_begins_with_its_first_event),
        test(test_what_came_while_the_log_was_away_is_wanted),
        test(test_if_nothing_came_it_begins_with_its_next_event),
        test(test_a_look_at_the_log_may_come_before_its_end_is_told),
        test(test_what_the_log_has_lost_meanwhile_is_a_gap),
        test(test_duplicates_are_dropped),
        test(test_plain_messages_wait_for_nobody),
        test(test_gap_is_filled_from_the_log_before_its_message),
        test(test_gap_is_filled_batch_by_batch),
        test(test_gap_among_what_is_held_back_is_filled_too),
        test(test_events_in_the_log_and_held_back_are_passed_once),
        test(test_what_the_log_has_lost_is_told_where_it_was),
        test(test_stretch_that_cannot_be_read_is_told),
        test(test_lost_connection_shows_by_the_end_of_the_log),
        test(test_events_after_the_last_one_of_a_quiet_shard_are_passed),
        test(test_quiet_shard_with_much_behind_it_is_read_to_the_end),
        test(test_batch_asked_for_too_early_proves_nothing_lost),
        test(test_batch_that_comes_late_repeats_nothing),
        test(test_reading_may_run_far_ahead_of_the_channel),
        test(test_more_than_may_be_held_is_read_from_the_log),
        test(test_duplicate_that_does_not_fit_drops_nothing_for_good),
        test(test_event_too_big_to_be_held_is_read_from_the_log),
        test(test_without_memory_nothing_is_lost_or_late),
        test(test_id_below_the_last_one_that_is_new_rewinds),
        test(test_new_id_after_a_lost_tail_rewinds),
        test(test_lost_tail_shows_in_the_log_too),
        test(test_what_was_missed_below_the_last_id_is_found),
        test(test_rewound_log_shows_when_hearing_begins_again),
        test(test_rewound_log_that_was_trimmed_up_to_what_passed_has_no_gap),
        test(test_new_id_among_those_read_from_the_log_rewinds),
        test(test_rewound_log_that_is_trimmed_is_reported),
        test(test_what_a_former_master_says_is_dropped),
        test(test_what_a_former_master_said_is_told_once),
        test(test_two_logs_and_none_can_be_read),
        test(test_ids_are_remembered_for_a_while),
        test(test_any_history_arrives_in_order_and_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
