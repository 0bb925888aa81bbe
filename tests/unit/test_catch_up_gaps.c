/* Clients that catch up while events are missing, or have been rewound. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/intake/gap.h"
#include "tests/support/catch_up_scene.h"

static void answer_with_trouble(uint32_t shard)
{
    struct fake_log *log = &logs[shard];

    assert_true(log->request.is_asked);
    log->request.is_asked = false;
    log->request.done(log->request.owner, NULL, -EPIPE, "Redis is away");
}

static const char *gap_text(uint64_t from, uint64_t to, enum gap_reason reason)
{
    static char text[128];

    snprintf(text, sizeof(text),
             "{\"type\":\"gap\",\"from\":\"%" PRIu64 "\",\"to\":\"%" PRIu64 "\",\"reason\":\"%s\"}",
             from, to, gap_reason_name(reason));
    return text;
}

/* Expects a gap with this text, and then these ids. */
static void check_gap_then(struct fake_client *client, const char *gap, const char *then)
{
    const char *got = received(client);

    assert_memory_equal(got, gap, strlen(gap));
    got += strlen(gap);
    assert_string_equal(got + (*got == ' '), then);
}

/* Redis has lost events: they are neither logged nor published, and the next event names the last
 * of them as its previous one. */
static void tell_lost(size_t count, enum gap_reason reason)
{
    struct fake_log *log = &logs[0];
    struct gap gap = {.from = id_at(log->count - 1), .reason = reason};

    assert_int_equal(log->passed, log->count);
    for (size_t i = 0; i < count; i++)
        gap.to = publish("lost");
    log->passed = log->count;
    for (size_t i = log->count - count; i < log->count; i++)
        log->entries[i].is_deleted = true;
    deliver_gap(deliver, &gap);
    deliver_turn_end(deliver);
}

/* A failover: the last events of the log are undone. The next event names the one before them. */
static void rewind_in_turn(size_t count)
{
    struct fake_log *log = &logs[0];
    struct gap gap = {
        .from = id_at(log->count - count - 1), .to = id_at(log->count - 1), .reason = GAP_REWOUND};

    assert_int_equal(log->passed, log->count);
    log->count = log->passed = log->count - count;
    deliver_gap(deliver, &gap);
}

static void rewind_log(size_t count)
{
    rewind_in_turn(count);
    deliver_turn_end(deliver);
}

/* --- lost events ------------------------------------------------------------------------------ */

static void test_a_cursor_older_than_the_log_is_told_both_ends(void **state)
{
    char expected[256];

    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(300);
    logs[0].first = 100;
    resume(&a, NULL, id_at(10));
    resume(&b, NULL, id_at(99)); /* has everything that was trimmed */
    settle();
    snprintf(expected, sizeof(expected),
             "{\"type\":\"gap\",\"from\":\"%" PRIu64 "\",\"to\":\"%" PRIu64
             "\",\"reason\":\"retention\"} %" PRIu64 " ",
             id_at(10), id_at(99), id_at(100));
    assert_memory_equal(received(&a), expected, strlen(expected));
    assert_string_equal(received(&b), ids(100, 300, 1));
    assert_true(is_live(&a));
}

static void test_a_log_that_was_emptied_is_told_as_a_gap(void **state)
{
    char expected[256];

    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(10);
    logs[0].first = 10;
    resume(&a, NULL, id_at(4));
    resume(&b, NULL, id_at(9));
    settle();
    snprintf(expected, sizeof(expected),
             "{\"type\":\"gap\",\"from\":\"%" PRIu64 "\",\"to\":\"%" PRIu64
             "\",\"reason\":\"retention\"}",
             id_at(4), id_at(9));
    assert_string_equal(received(&a), expected);
    assert_string_equal(received(&b), "");
    post("x");
    assert_string_equal(received(&a), ids(10, 11, 1));
    assert_string_equal(received(&b), ids(10, 11, 1));
}

static void test_a_gap_in_the_ring_is_told_to_who_resumes_from_before_it(void **state)
{
    struct gap gap = {.reason = GAP_RETENTION};
    char expected[256];

    (void)state;
    begin_again(1 << 20, 1 << 20, LAG_MS);
    posts(10);
    gap.from = id_at(9);
    gap.to = id_at(9) + 1;
    deliver_gap(deliver, &gap);
    posts(10);
    resume(&a, NULL, id_at(9));
    resume(&b, NULL, gap.to); /* has everything that is missing */
    settle();
    snprintf(expected, sizeof(expected),
             "{\"type\":\"gap\",\"from\":\"%" PRIu64 "\",\"to\":\"%" PRIu64
             "\",\"reason\":\"retention\"} %s",
             gap.from, gap.to, ids(10, 20, 1));
    assert_string_equal(received(&a), expected);
    assert_string_equal(received(&b), ids(10, 20, 1));
}

static void test_who_is_overtaken_by_the_end_of_the_log_is_too_slow(void **state)
{
    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(1500);
    a.room = 1000;
    resume(&a, NULL, id_at(10));
    settle();
    logs[0].first = 1400;
    make_room(&a, FAKE_UNLIMITED);
    settle();
    assert_int_equal(a.evictions, 1);
    assert_int_equal(a.disconnect_reason, DISCONNECT_TOO_SLOW);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id,
                     id_at(10 + a.client.sent_events));
    assert_true(a.client.sent_events > 100);
}

static void test_what_cannot_be_read_is_told_as_a_gap(void **state)
{
    const char *got;

    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(10);
    logs[0].entries[6].is_unreadable = true;
    resume(&a, NULL, id_at(2));
    settle();
    got = received(&a);
    assert_non_null(strstr(got, "\"reason\":\"redis\""));
    post("x");
    assert_string_equal(received(&a), ids(10, 11, 1));
}

static void test_trouble_with_redis_is_waited_out(void **state)
{
    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(10);
    resume(&a, NULL, id_at(2));
    turn();
    answer_with_trouble(0);
    assert_false(logs[0].request.is_asked); /* not at once, but in a separate turn */
    while (!logs[0].request.is_asked)
        uv_run(&loop, UV_RUN_ONCE);
    settle();
    assert_string_equal(received(&a), ids(3, 10, 1));
    assert_int_equal(metric_get(metrics, METRIC_LOG_READ_FAILURES), 1);
}

/* However much of it is still in the ring when the client connects: one that has everything before
 * the gap and nothing after it is told about it, once. */
static void check_gap_is_told(enum gap_reason reason, size_t posts_behind)
{
    uint64_t from, to;

    begin_again(ROOM, 1 << 20, LAG_MS);
    posts(20);
    from = id_at(19);
    tell_lost(3, reason);
    to = id_at(22);
    posts(posts_behind);
    resume(&a, NULL, from);
    resume(&b, NULL, to);        /* was told already */
    resume(&c, NULL, id_at(21)); /* is in the middle of it */
    settle();
    assert_true(is_live(&a) && is_live(&b) && is_live(&c));
    check_gap_then(&a,
                   strstr(buffer_str(&a.received), "redis")
                       ? gap_text(from, to, GAP_REDIS)
                       : gap_text(from, to, GAP_RETENTION), /* all that the log can tell */
                   ids(23, 23 + posts_behind, 1));
    assert_string_equal(received(&b), ids(23, 23 + posts_behind, 1));
    assert_int_equal(c.client.sent_events, posts_behind + 1);
    post("x");
    assert_string_equal(received(&a), ids(23 + posts_behind, 24 + posts_behind, 1));
}

static void test_a_gap_is_told_wherever_in_the_ring_it_was(void **state)
{
    (void)state;
    for (size_t count = 0; count < 130; count++) {
        check_gap_is_told(GAP_REDIS, count);
        check_gap_is_told(GAP_RETENTION, count);
    }
}

static void test_a_gap_is_told_by_a_ring_that_keeps_nothing(void **state)
{
    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(20);
    tell_lost(3, GAP_RETENTION);
    resume(&a, NULL, id_at(19));
    settle();
    assert_string_equal(received(&a), gap_text(id_at(19), id_at(22), GAP_RETENTION));
    assert_true(is_live(&a));
    resume(&b, NULL, id_at(22));
    settle();
    assert_string_equal(received(&b), "");
    assert_true(is_live(&b));
    post("x");
    assert_string_equal(received(&a), ids(23, 24, 1));
    assert_string_equal(received(&b), ids(23, 24, 1));
}

/* There was no memory for the gap: all clients were disconnected, and are told when they come
 * back. */
static void test_a_gap_that_could_not_be_told_is_told_to_who_comes_back(void **state)
{
    struct gap gap = {.reason = GAP_RETENTION};

    (void)state;
    posts(20);
    publish("lost");
    logs[0].entries[20].is_deleted = true;
    logs[0].passed = 21;
    gap.from = id_at(19);
    gap.to = id_at(20);
    subscribe(&b, NULL);
    mem_fail_after(0);
    deliver_gap(deliver, &gap);
    mem_fail_never();
    assert_int_equal(b.evictions, 1);
    resume(&a, NULL, b.disconnect_cursor.id);
    settle();
    assert_string_equal(received(&a), gap_text(id_at(19), id_at(20), GAP_RETENTION));
    post("x");
    assert_string_equal(received(&a), ids(21, 22, 1));
}

/* Live, in the ring, or reading the log: every client is disconnected, and gets it when it comes
 * back. */
static void test_what_there_was_no_memory_for_is_had_on_coming_back(void **state)
{
    (void)state;
    posts(20);
    subscribe(&a, NULL);
    a.room = 0;
    post("x");
    a.room = FAKE_UNLIMITED;
    resume(&b, NULL, id_at(18));
    logs[0].passed++;
    deliver_miss(deliver, 0, publish("missed"));
    assert_int_equal(a.disconnect_reason, DISCONNECT_INTERNAL);
    assert_int_equal(b.disconnect_reason, DISCONNECT_INTERNAL);
    assert_int_equal(a.disconnect_cursor.id, id_at(19));
    resume(&c, NULL, deliver_client_cursor(deliver, &b.client).id);
    settle();
    assert_string_equal(received(&c), ids(19, 22, 1));
    post("x");
    assert_string_equal(received(&c), ids(22, 23, 1));
}

/* After it come many events that the client does not want: they do not move its cursor past the
 * gap. */
static void test_who_leaves_before_a_gap_was_sent_is_told_when_it_comes_back(void **state)
{
    uint64_t from, to, cursor;

    (void)state;
    posts(20);
    from = id_at(19);
    subscribe(&a, "milk");
    a.room = 0;
    tell_lost(3, GAP_RETENTION);
    to = id_at(22);
    resume(&b, "milk", from);
    b.room = 0;
    posts(50);
    settle();
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, from);
    cursor = deliver_client_cursor(deliver, &b.client).id;
    assert_int_equal(cursor, from);
    resume(&c, "milk", cursor);
    settle();
    assert_string_equal(received(&c), gap_text(from, to, GAP_RETENTION));
}

/* Removes events from the log. */
static void delete_logged(size_t from, size_t to)
{
    while (from < to)
        logs[0].entries[from++].is_deleted = true;
}

/* Wherever in a batch the hole is, even if it is as long as a batch: clients that read there are
 * told, and continue. */
static void test_a_hole_in_the_log_ends_no_stream(void **state)
{
    (void)state;
    for (size_t first = 120; first < 160; first++) {
        size_t end = first + 1 + first % 7 * 20;
        char expected[160];
        const char *got;

        begin_again(0, 1 << 20, LAG_MS);
        posts(500);
        resume(&a, NULL, id_at(10));
        turn();
        answer(0);
        turn(); /* has got the first batch */
        delete_logged(first, end);
        settle();
        assert_true(is_live(&a));
        got = strchr(received(&a), '{');
        if (first <= 10 + LOG_BATCH_EVENTS && end <= 11 + LOG_BATCH_EVENTS) {
            assert_null(got); /* that batch had been read before */
            continue;
        }
        assert_non_null(got);
        snprintf(expected, sizeof(expected), "%s ",
                 gap_text(first > 10 + LOG_BATCH_EVENTS ? id_at(first - 1)
                                                        : id_at(10 + LOG_BATCH_EVENTS),
                          id_at(end - 1), GAP_RETENTION));
        assert_memory_equal(got, expected, strlen(expected));
        assert_string_equal(got + strlen(expected), ids(end, 500, 1));
    }
}

static void test_a_hole_at_the_end_of_the_log_ends_no_stream(void **state)
{
    (void)state;
    for (size_t first = 11 + LOG_BATCH_EVENTS; first < 14 + LOG_BATCH_EVENTS; first++) {
        const char *got;

        begin_again(0, 1 << 20, LAG_MS);
        posts(300);
        resume(&a, NULL, id_at(10));
        turn();
        answer(0);
        turn();
        delete_logged(first, 300);
        settle();
        assert_true(is_live(&a));
        got = strchr(received(&a), '{');
        assert_non_null(got);
        assert_string_equal(got, gap_text(id_at(first - 1), id_at(299), GAP_RETENTION));
        post("x");
        assert_string_equal(received(&a), ids(300, 301, 1));
    }
}

/* At that moment it is impossible to ask whether the log was trimmed. */
static void test_trouble_at_a_hole_is_waited_out(void **state)
{
    char expected[160];
    const char *got;

    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(300);
    resume(&a, NULL, id_at(10));
    turn();
    answer(0);
    turn();
    delete_logged(139, 150);
    answer(0);
    turn();
    answer_with_trouble(0);
    while (!logs[0].request.is_asked)
        uv_run(&loop, UV_RUN_ONCE);
    settle();
    assert_true(is_live(&a));
    got = strchr(received(&a), '{');
    assert_non_null(got);
    snprintf(expected, sizeof(expected), "%s %" PRIu64 " ",
             gap_text(id_at(138), id_at(149), GAP_RETENTION), id_at(150));
    assert_memory_equal(got, expected, strlen(expected));
}

/* --- rewound events --------------------------------------------------------------------------- */

/* The client has events that the log has no more; it may or may not have been told when it left. */
static void test_who_comes_back_with_the_last_of_what_was_rewound_is_told(void **state)
{
    uint64_t had;

    (void)state;
    posts(20);
    had = id_at(19);
    rewind_log(3);
    resume(&a, NULL, had);
    resume(&b, NULL, had - SL_ID_PER_MS);
    posts(5);
    resume(&c, NULL, id_at(17));
    settle();
    check_gap_then(&a, gap_text(id_at(16), had, GAP_REWOUND), ids(17, 22, 1));
    assert_non_null(strstr(received(&b), gap_text(id_at(16), had, GAP_REWOUND)));
    assert_string_equal(received(&c), ids(18, 22, 1));
}

/* The clock of the new master is behind: lost ids, or ids between them, are used again. */
static void test_ids_that_come_again_after_a_rewind_are_not_passed_over(void **state)
{
    char expected[4096];
    uint64_t lost;

    (void)state;
    begin_again(1 << 20, 4096, LAG_MS);
    posts(20);
    lost = id_at(19);
    resume(&a, NULL, id_at(9)); /* its turn has not come yet */
    subscribe(&b, NULL);
    b.room = 0;
    rewind_log(5);
    last_id = id_at(14);
    for (int i = 0; i < 100; i++)
        post("again"); /* b falls behind */
    settle();
    make_room(&b, FAKE_UNLIMITED);
    resume(&c, NULL, lost);
    settle();
    assert_true(is_live(&a) && is_live(&b) && is_live(&c));
    assert_non_null(strstr(received(&a), ids(15, 115, 1)));
    snprintf(expected, sizeof(expected), "%s %s", gap_text(id_at(14), lost, GAP_REWOUND),
             ids(15, 115, 1));
    check_all_but_warning(&b, expected);
    check_gap_then(&c, gap_text(id_at(14), lost, GAP_REWOUND), ids(15, 115, 1));
}

static void come_again(struct fake_client *client, uint64_t cursor)
{
    leave(client);
    fake_client_init(client, FORMAT_NDJSON, head);
    resume(client, NULL, cursor);
}

/* The new master's clock is behind: until it has caught up, its ids are lower than the lost ones.
 * `count` events are lost, the last one `ahead_ms` after the others. Returns the id of that one. */
static uint64_t fail_over_to_a_slow_clock(size_t count, uint64_t ahead_ms)
{
    uint64_t lost;

    last_id += ahead_ms * SL_ID_PER_MS;
    lost = post("lost");
    rewind_log(count);
    last_id = id_at(logs[0].count - 1);
    id_offset = 1;
    return lost;
}

static void test_who_comes_back_from_behind_a_rewind_gets_what_follows_and_no_more(void **state)
{
    uint64_t kept, lost;
    const char *got;

    (void)state;
    begin_again(1 << 20, 4096, LAG_MS);
    posts(20);
    subscribe(&a, NULL);
    kept = id_at(15);
    lost = fail_over_to_a_slow_clock(5, 1000);
    deliver_set_watermark(deliver, lost);
    assert_int_equal(head().id, kept);
    post("x");
    assert_int_equal(head().id, id_at(16)); /* and not the lost one */
    posts(3);
    resume(&b, NULL, id_at(17));
    settle();
    assert_string_equal(received(&b), ids(18, 20, 1));
    resume(&c, NULL, head().id);
    posts(2);
    settle();
    assert_string_equal(received(&c), ids(20, 22, 1));
    come_again(&c, lost);
    settle();
    check_gap_then(&c, gap_text(kept, lost, GAP_REWOUND), ids(16, 22, 1));
    come_again(&c, kept);
    settle();
    got = strstr(received(&c), gap_text(kept, lost, GAP_REWOUND));
    assert_non_null(got);
    assert_string_equal(got + strlen(gap_text(kept, lost, GAP_REWOUND)) + 1, ids(16, 22, 1));
    last_id = lost; /* it has caught up */
    posts(3);
    come_again(&b, id_at(23));
    settle();
    assert_string_equal(received(&b), ids(24, 25, 1));
    assert_true(is_live(&a) && is_live(&b) && is_live(&c));
    assert_non_null(strstr(received(&a), ids(16, 25, 1)));
}

/* With several shards: the gap of an earlier rewind is not repeated, nor the events that replaced
 * what was lost, although there was another rewind since. */
static void test_who_comes_back_from_between_two_rewinds_gets_what_follows_the_first(void **state)
{
    uint64_t had, kept, lost, last;
    char expected[256];
    const char *got;

    (void)state;
    begin_with_quiet_shards(1 << 20);
    posts(5);
    rewind_log(2);
    posts(5);
    had = publish_in(1, "ada", "tea");
    pass_in(1);
    kept = post("tea");
    lost = post("lost");
    rewind_log(1);
    last = post("tea");
    resume(&a, NULL, had);
    settle();
    snprintf(expected, sizeof(expected),
             "%" PRIu64 " %" PRIu64 " {\"type\":\"gap\",\"from\":\"%" PRIu64 "\",\"to\":\"%" PRIu64
             "\",\"reason\":\"rewound\",\"shard\":0} %" PRIu64,
             kept, lost, kept, lost, last);
    assert_string_equal(received(&a), expected);
    resume(&b, NULL,
           had + 1); /* a cursor that is not an event's id: it may not cover the first one */
    settle();
    got = received(&b);
    assert_string_equal(strchr(got, '}') + 2, expected);
}

/* Neither the lost events nor the gap about them are in memory any more. */
static void test_a_rewind_that_has_left_the_ring_is_no_gap_to_who_comes_later(void **state)
{
    (void)state;
    begin_again(ROOM, 4096, LAG_MS);
    posts(20);
    fail_over_to_a_slow_clock(5, 100000);
    posts(1000);
    resume(&a, NULL, id_at(500));
    subscribe(&b, NULL);
    b.room = 0;
    posts(1000); /* b falls behind */
    make_room(&b, FAKE_UNLIMITED);
    settle();
    assert_string_equal(received(&a), ids(501, 2016, 1));
    check_all_but_warning(&b, ids(1016, 2016, 1));
    assert_true(is_live(&a) && is_live(&b));
}

static void test_a_rewind_that_has_left_the_ring_is_told_to_who_has_what_it_lost(void **state)
{
    uint64_t lost;

    (void)state;
    begin_again(ROOM, 4096, LAG_MS);
    posts(20);
    lost = id_at(19);
    rewind_log(3);
    posts(1000);
    resume(&a, NULL, lost);
    resume(&b, NULL, id_at(16));
    resume(&c, NULL, lost + 1); /* nobody's id */
    settle();
    check_gap_then(&a, gap_text(id_at(16), lost, GAP_REWOUND), ids(17, 1017, 1));
    assert_string_equal(received(&b), ids(17, 1017, 1));
    assert_string_equal(received(&c), ids(17, 1017, 1));
}

/* The new log is ahead of what has passed. */
static void test_what_is_logged_behind_a_rewind_comes_once(void **state)
{
    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(20);
    fail_over_to_a_slow_clock(5, 100000);
    posts(100);
    publish("ahead");
    publish("ahead");
    resume(&a, NULL, id_at(50));
    settle();
    assert_string_equal(received(&a), ids(51, 116, 1));
    while (pass_in(0)) {
    }
    post("x");
    settle();
    assert_string_equal(received(&a), ids(116, 119, 1));
    assert_true(is_live(&a));
}

/* The gap has left the ring by the time the client reads on. */
static void test_who_was_behind_when_the_log_was_rewound_is_told(void **state)
{
    char expected[256];
    uint64_t lost;
    const char *got;

    (void)state;
    begin_again(ROOM, 4096, LAG_MS);
    subscribe(&a, NULL);
    posts(20);
    lost = id_at(19);
    assert_string_equal(received(&a), ids(0, 20, 1));
    a.room = 0;
    rewind_log(3);
    posts(1000);
    assert_false(is_live(&a));
    make_room(&a, FAKE_UNLIMITED);
    settle();
    assert_true(is_live(&a));
    got = strchr(received(&a), '{');
    got = got ? strstr(got, "{\"type\":\"gap\"") : NULL;
    assert_non_null(got);
    snprintf(expected, sizeof(expected), "%s ", gap_text(id_at(16), lost, GAP_REWOUND));
    assert_memory_equal(got, expected, strlen(expected));
    got += strlen(expected);
    assert_null(strstr(got, "gap"));
    assert_non_null(strstr(got, ids(100, 1017, 1)));
}

static size_t count_of(const char *text, const char *word)
{
    size_t count = 0;

    for (; (text = strstr(text, word)); text += strlen(word))
        count++;
    return count;
}

/* Of one second with 20 posts; `a` has them all. */
static void begin_counting(void)
{
    begin_again(1 << 20, 4096, LAG_MS);
    last_id = (last_id / SL_ID_PER_MS / 1000 + 1) * 1000 * SL_ID_PER_MS;
    posts(20);
    a.client.question = (struct count_question){.bucket_ms = 1000};
    resume(&a, NULL, id_at(0));
    settle();
    assert_true(is_live(&a));
}

/* After the rest of the second and its end. */
static void check_counted(size_t rewinds, const char *posts)
{
    const char *got;

    settle();
    deliver_set_watermark(deliver, last_id + 1000 * SL_ID_PER_MS);
    settle();
    got = received(&a);
    assert_int_equal(count_of(got, "rewound"), rewinds);
    assert_int_equal(count_of(got, posts), 1);
}

/* Batches that were read before the rewind contain events that the log has lost. */
static void test_what_was_rewound_is_not_counted_from_old_batches(void **state)
{
    (void)state;
    begin_counting();
    rewind_in_turn(3);
    posts(2);
    check_counted(1, "\"posts\":19,");
}

/* Read between two rewinds, and answered after the second. */
static void test_what_was_rewound_is_not_counted_from_a_batch_on_its_way(void **state)
{
    (void)state;
    begin_counting();
    rewind_log(3);
    for (int i = 0; i < 10 && !logs[0].request.is_asked; i++)
        turn();
    assert_true(logs[0].request.is_asked);
    rewind_in_turn(2);
    logs[0].count += 2;
    answer(0);
    logs[0].count -= 2;
    posts(2);
    check_counted(2, "\"posts\":17,");
}

/* The client left after the bucket was sent, and before it was told that a part of it is lost. */
static void test_who_comes_back_from_a_rewound_bucket_gets_it_again(void **state)
{
    uint64_t lost, end;
    const char *got;

    (void)state;
    begin_counting();
    lost = id_at(19);
    end = (last_id / SL_ID_PER_MS / 1000 + 1) * 1000 * SL_ID_PER_MS - 1;
    check_counted(0, "\"posts\":20,");
    leave(&a);
    rewind_log(3);
    b.client.question = a.client.question;
    resume(&b, NULL, end);
    settle();
    got = received(&b);
    assert_memory_equal(got, gap_text(id_at(16), lost, GAP_REWOUND),
                        strlen(gap_text(id_at(16), lost, GAP_REWOUND)));
    assert_int_equal(count_of(got, "counts"), 1);
    assert_non_null(strstr(got, "\"posts\":17,"));
    assert_non_null(strstr(got, "\"revision\":1"));
    assert_non_null(strstr(got, "\"gap\":true"));
    c.client.question = a.client.question;
    resume(&c, NULL, end + 1000 * SL_ID_PER_MS); /* it was sent the bucket after that, too */
    settle();
    assert_string_equal(received(&c), "");
}

/* With a pace: what was picked from a window depends on what is lost since, whether or not the
 * client's last event is. */
static void test_who_comes_back_from_a_rewound_window_is_told(void **state)
{
    uint64_t lost;

    (void)state;
    begin_counting();
    lost = id_at(19);
    rewind_log(3);
    b.client.question = c.client.question =
        (struct count_question){.bucket_ms = 1000, .pick = {.posts = 2, .pick = PICK_NEWEST}};
    resume(&b, NULL, lost);
    resume(&c, NULL, id_at(15));
    settle();
    assert_string_equal(received(&b), gap_text(id_at(16), lost, GAP_REWOUND));
    assert_string_equal(received(&c), gap_text(id_at(16), lost, GAP_REWOUND));
    deliver_set_watermark(deliver, last_id + 1000 * SL_ID_PER_MS);
    settle();
    assert_non_null(strstr(received(&b), "\"events\":15}"));
    assert_memory_equal(received(&c), ids(16, 17, 1), strlen(ids(16, 17, 1)));
    leave(&a);
    fake_client_init(&a, FORMAT_NDJSON, head);
    a.client.question = b.client.question;
    resume(&a, NULL, id_at(0) - 10 * SL_ID_PER_MS); /* it has nothing of the window */
    settle();
    assert_null(strstr(received(&a), "gap"));
}

static void begin_second(void)
{
    last_id = (last_id / SL_ID_PER_MS / 1000 + 1) * 1000 * SL_ID_PER_MS;
    deliver_set_watermark(deliver, last_id - 1);
    settle();
}

/* A client that is behind finds the events, the gap, and the end of their window in the ring. */
static void test_what_was_rewound_is_not_picked_after_the_gap(void **state)
{
    uint64_t kept, lost;
    const char *got;

    (void)state;
    begin_again(1 << 20, 2048, LAG_MS);
    post("x");
    a.client.question =
        (struct count_question){.bucket_ms = 1000, .pick = {.posts = 20, .pick = PICK_NEWEST}};
    resume(&a, NULL, id_at(0));
    begin_second();
    assert_true(is_live(&a));
    a.room = 0;
    for (int i = 0; i < 10 && is_live(&a); i++) {
        posts(20);
        begin_second();
    }
    assert_false(is_live(&a));
    posts(10);
    lost = id_at(logs[0].count - 1);
    kept = id_at(logs[0].count - 4);
    rewind_log(3);
    posts(2);
    begin_second();
    posts(1);
    make_room(&a, FAKE_UNLIMITED);
    settle();
    begin_second();
    got = strstr(received(&a), gap_text(kept, lost, GAP_REWOUND));
    assert_non_null(got);
    got += strlen(gap_text(kept, lost, GAP_REWOUND)) + 1;
    assert_string_equal(got, ids(logs[0].count - 10, logs[0].count, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CATCH_UP_TEST(test_a_cursor_older_than_the_log_is_told_both_ends),
        CATCH_UP_TEST(test_a_log_that_was_emptied_is_told_as_a_gap),
        CATCH_UP_TEST(test_a_gap_in_the_ring_is_told_to_who_resumes_from_before_it),
        CATCH_UP_TEST(test_who_is_overtaken_by_the_end_of_the_log_is_too_slow),
        CATCH_UP_TEST(test_what_cannot_be_read_is_told_as_a_gap),
        CATCH_UP_TEST(test_trouble_with_redis_is_waited_out),
        CATCH_UP_TEST(test_a_gap_is_told_wherever_in_the_ring_it_was),
        CATCH_UP_TEST(test_a_gap_is_told_by_a_ring_that_keeps_nothing),
        CATCH_UP_TEST(test_a_gap_that_could_not_be_told_is_told_to_who_comes_back),
        CATCH_UP_TEST(test_what_there_was_no_memory_for_is_had_on_coming_back),
        CATCH_UP_TEST(test_who_leaves_before_a_gap_was_sent_is_told_when_it_comes_back),
        CATCH_UP_TEST(test_a_hole_in_the_log_ends_no_stream),
        CATCH_UP_TEST(test_a_hole_at_the_end_of_the_log_ends_no_stream),
        CATCH_UP_TEST(test_trouble_at_a_hole_is_waited_out),
        CATCH_UP_TEST(test_who_comes_back_with_the_last_of_what_was_rewound_is_told),
        CATCH_UP_TEST(test_ids_that_come_again_after_a_rewind_are_not_passed_over),
        CATCH_UP_TEST(test_who_comes_back_from_behind_a_rewind_gets_what_follows_and_no_more),
        CATCH_UP_TEST(test_who_comes_back_from_between_two_rewinds_gets_what_follows_the_first),
        CATCH_UP_TEST(test_a_rewind_that_has_left_the_ring_is_no_gap_to_who_comes_later),
        CATCH_UP_TEST(test_a_rewind_that_has_left_the_ring_is_told_to_who_has_what_it_lost),
        CATCH_UP_TEST(test_what_is_logged_behind_a_rewind_comes_once),
        CATCH_UP_TEST(test_who_was_behind_when_the_log_was_rewound_is_told),
        CATCH_UP_TEST(test_what_was_rewound_is_not_counted_from_old_batches),
        CATCH_UP_TEST(test_what_was_rewound_is_not_counted_from_a_batch_on_its_way),
        CATCH_UP_TEST(test_who_comes_back_from_a_rewound_bucket_gets_it_again),
        CATCH_UP_TEST(test_who_comes_back_from_a_rewound_window_is_told),
        CATCH_UP_TEST(test_what_was_rewound_is_not_picked_after_the_gap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
