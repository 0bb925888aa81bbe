#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "gateway/intake/live_feed.h"
#include "gateway/ops/metrics.h"
#include "src/id.h"
#include "tests/support/cmocka_all.h"

static struct metrics_board *board;
static struct metrics *metrics;
static struct buffer told; /* what was called back, a word each */
static struct live_feed *feed;

static void on_message(void *context, const struct live_message *message)
{
    assert_ptr_equal(context, &told);
    assert_int_equal(message->received_ms, 99);
    buffer_append_format(&told, "%u:%" PRIu64 "<%" PRIu64 "=%.*s ", message->shard, message->id,
                         message->previous, SL_SLICE_ARG(message->json));
}

static void on_gap(void *context, const struct live_gap *gap)
{
    assert_ptr_equal(context, &told);
    buffer_append_format(&told, "%s:%u:%" PRIu64 "-%" PRIu64 " ",
                         gap->reason == LIVE_GAP_MISSED ? "missed" : "rewound", gap->shard,
                         gap->from, gap->to);
}

static const struct live_feed_callbacks callbacks = {on_message, on_gap};

static int make_feed(void **state)
{
    (void)state;
    board = metrics_board_new(1);
    metrics = metrics_slot(board, 0);
    feed = live_feed_new(20, metrics, &callbacks, &told);
    return feed ? 0 : -1;
}

static int free_feed(void **state)
{
    (void)state;
    live_feed_free(feed);
    metrics_board_free(board);
    buffer_done(&told);
    return 0;
}

static int take(const char *channel, const char *payload)
{
    char *copy = mem_copy(payload, strlen(payload)); /* reading behind it is caught */
    int r = live_feed_take(feed, sl_slice_str(channel), sl_slice(copy, strlen(payload)), 99);

    mem_free(copy);
    return r;
}

/* What was called back since the last time. */
static void expect_told(const char *expected)
{
    buffer_append_char(&told, '\0');
    assert_string_equal(told.data, expected);
    buffer_clear(&told);
}

#define SHARD_0 "sluice:{0}:live"

static void test_messages_in_order_pass(void **state)
{
    (void)state;
    assert_int_equal(take(SHARD_0, "4096 0 {}"), 0);
    assert_int_equal(take(SHARD_0, "4097 4096 {\"a\": 1}"), 0);
    assert_int_equal(take(SHARD_0, "8192 4097 { }"), 0);
    expect_told("0:4096<0={} 0:4097<4096={\"a\": 1} 0:8192<4097={ } ");
    assert_int_equal(metric_get(metrics, METRIC_EVENTS_RECEIVED), 3);
}

static void test_first_message_shows_no_gap(void **state)
{
    (void)state;
    assert_int_equal(take(SHARD_0, "8192 4096 {}"), 0);
    expect_told("0:8192<4096={} ");
}

static void test_gap_is_told_before_its_message(void **state)
{
    (void)state;
    take(SHARD_0, "4096 0 {}");
    take(SHARD_0, "12288 8192 {}");
    take(SHARD_0, "16384 12288 {}");
    expect_told("0:4096<0={} missed:0:4096-8192 0:12288<8192={} 0:16384<12288={} ");
    assert_int_equal(metric_get(metrics, METRIC_EVENT_GAPS), 1);
}

static void test_duplicates_are_dropped(void **state)
{
    (void)state;
    take(SHARD_0, "4096 0 {}");
    take(SHARD_0, "4097 4096 {}");
    assert_int_equal(take(SHARD_0, "4097 4096 {}"), -EALREADY);
    assert_int_equal(take(SHARD_0, "4096 0 {}"), -EALREADY);
    take(SHARD_0, "4098 4097 {}");
    expect_told("0:4096<0={} 0:4097<4096={} 0:4098<4097={} ");
    assert_int_equal(metric_get(metrics, METRIC_EVENTS_DUPLICATE), 2);
}

static void test_id_below_the_last_one_that_is_new_rewinds(void **state)
{
    (void)state;
    take(SHARD_0, "4096 0 {}");
    take(SHARD_0, "16384 4096 {}");
    take(SHARD_0, "8192 4096 {}");
    take(SHARD_0, "8193 8192 {}");
    assert_int_equal(take(SHARD_0, "16384 4096 {}"), -EALREADY);
    expect_told("0:4096<0={} 0:16384<4096={} rewound:0:4096-16384 0:8192<4096={} "
                "0:8193<8192={} ");
    assert_int_equal(metric_get(metrics, METRIC_EVENT_REWINDS), 1);
    assert_int_equal(metric_get(metrics, METRIC_EVENT_GAPS), 0);
}

static void test_new_id_after_a_lost_tail_is_counted_but_misleads_no_cursor(void **state)
{
    (void)state;
    take(SHARD_0, "4096 0 {}");
    take(SHARD_0, "8192 4096 {}");
    take(SHARD_0, "12288 4096 {}");
    expect_told("0:4096<0={} 0:8192<4096={} 0:12288<4096={} ");
    assert_int_equal(metric_get(metrics, METRIC_EVENT_REWINDS), 1);
}

static void test_shards_have_an_order_each(void **state)
{
    char payload[64];

    (void)state;
    take("sluice:{1}:live", "4160 0 {}");
    take(SHARD_0, "4096 0 {}");
    take("sluice:{1}:live", "4161 4160 {}");
    snprintf(payload, sizeof(payload), "%d 0 {}", 4096 + 63 * 64);
    take("sluice:{63}:live", payload);
    expect_told("1:4160<0={} 0:4096<0={} 1:4161<4160={} 63:8128<0={} ");
}

static void test_plain_producers_have_no_order(void **state)
{
    (void)state;
    take(SHARD_0, "{\"a\":1}");
    take(SHARD_0, "4096 0 {}");
    take(SHARD_0, "{\"a\":1}");
    take(SHARD_0, "4097 4096 {}");
    expect_told("0:0<0={\"a\":1} 0:4096<0={} 0:0<0={\"a\":1} 0:4097<4096={} ");
}

static void test_bad_headers_are_refused_and_change_nothing(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "x",
        "[]",
        "4097",
        "4097 ",
        "4097 4096",
        "4097 4096 ",
        "4097 4096 x",
        "4097 4096  {}",
        " 4097 4096 {}",
        "4097\t4096 {}",
        "4097 {}",
        "04097 4096 {}",
        "4097 04096 {}",
        "-4097 4096 {}",
        "+4097 4096 {}",
        "4097 -1 {}",
        "0 0 {}",
        "4097 4097 {}",
        "4097 4098 {}",
        "4160 4096 {}",             /* shard 1 */
        "9007199254740993 4096 {}", /* above 2^53 */
        "99999999999999999999 4096 {}",
    };

    (void)state;
    take(SHARD_0, "4096 0 {}");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (take(SHARD_0, bad[i]) != -EBADMSG)
            fail_msg("taken: '%s'", bad[i]);
    }
    assert_int_equal(take("sluice:{64}:live", "{}"), -EBADMSG);
    assert_int_equal(take("sluice:{00}:live", "{}"), -EBADMSG);
    assert_int_equal(take("sluice:{0}:log", "{}"), -EBADMSG);
    assert_int_equal(take("", "{}"), -EBADMSG);
    take(SHARD_0, "4097 4096 {}");
    expect_told("0:4096<0={} 0:4097<4096={} ");
    assert_int_equal(metric_get(metrics, METRIC_EVENTS_BAD_HEADER),
                     sizeof(bad) / sizeof(bad[0]) + 4);
}

static void test_long_event_is_dropped_without_a_gap(void **state)
{
    (void)state;
    take(SHARD_0, "4096 0 {}");
    assert_int_equal(take(SHARD_0, "4097 4096 {\"a\":\"0123456789012\"}"), -EMSGSIZE);
    assert_int_equal(take(SHARD_0, "{\"a\":\"0123456789012\"}"), -EMSGSIZE);
    assert_int_equal(take(SHARD_0, "4098 4097 {\"a\":\"012345678901\"}"), 0);
    expect_told("0:4096<0={} 0:4098<4097={\"a\":\"012345678901\"} ");
    assert_int_equal(metric_get(metrics, METRIC_EVENTS_TOO_BIG), 2);
}

static void test_ids_are_remembered_for_a_while(void **state)
{
    char payload[64];
    uint64_t previous = 0;

    (void)state;
    for (uint64_t i = 1; i <= 3000; i++) {
        uint64_t id = i * SL_ID_PER_MS;

        snprintf(payload, sizeof(payload), "%" PRIu64 " %" PRIu64 " {}", id, previous);
        assert_int_equal(take(SHARD_0, payload), 0);
        previous = id;
    }
    buffer_clear(&told);
    assert_int_equal(take(SHARD_0, "8192000 8187904 {}"), -EALREADY); /* 1000 back */
    assert_int_equal(take(SHARD_0, "4096 0 {}"), 0);
    expect_told("rewound:0:0-12288000 0:4096<0={} ");
}

static void test_out_of_memory_loses_one_message_only(void **state)
{
    struct live_feed *fresh;
    uint64_t n = 0;

    (void)state;
    mem_fail_after(0);
    assert_null(live_feed_new(20, metrics, &callbacks, &told));
    for (mem_fail_after(++n);; mem_fail_after(++n)) {
        int r;

        fresh = live_feed_new(20, metrics, &callbacks, &told);
        assert_non_null(fresh);
        r = live_feed_take(fresh, SL_SLICE(SHARD_0), SL_SLICE("4096 0 {}"), 99);
        mem_fail_never();
        if (r == 0)
            break;
        assert_int_equal(r, -ENOMEM);
        assert_int_equal(live_feed_take(fresh, SL_SLICE(SHARD_0), SL_SLICE("4097 4096 {}"), 99), 0);
        live_feed_free(fresh);
    }
    live_feed_free(fresh);
    assert_int_equal(n, 2);
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, make_feed, free_feed)
    static const struct CMUnitTest tests[] = {
        test(test_messages_in_order_pass),
        test(test_first_message_shows_no_gap),
        test(test_gap_is_told_before_its_message),
        test(test_duplicates_are_dropped),
        test(test_id_below_the_last_one_that_is_new_rewinds),
        test(test_new_id_after_a_lost_tail_is_counted_but_misleads_no_cursor),
        test(test_shards_have_an_order_each),
        test(test_plain_producers_have_no_order),
        test(test_bad_headers_are_refused_and_change_nothing),
        test(test_long_event_is_dropped_without_a_gap),
        test(test_ids_are_remembered_for_a_while),
        test(test_out_of_memory_loses_one_message_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
