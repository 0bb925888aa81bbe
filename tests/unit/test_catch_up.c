/* Clients that connect with a cursor, or fall behind, and catch up. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/delivery/home.h"
#include "gateway/delivery/rule_set.h"
#include "tests/support/catch_up_scene.h"

static uint64_t last_load;

static void on_load(void *owner, const char *user, uint64_t load)
{
    (void)owner;
    (void)user;
    last_load = load;
}

/* --- connecting with a cursor ----------------------------------------------------------------- */

static void test_what_is_in_the_ring_needs_no_log(void **state)
{
    (void)state;
    posts(10);
    resume(&a, NULL, id_at(3));
    settle();
    assert_string_equal(received(&a), ids(4, 10, 1));
    assert_true(is_live(&a));
    assert_int_equal(reads, 0);
    post("x");
    assert_string_equal(received(&a), ids(10, 11, 1));
}

static void test_what_is_not_in_the_ring_comes_from_the_log(void **state)
{
    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(1000);
    resume(&a, NULL, id_at(99));
    settle();
    assert_string_equal(received(&a), ids(100, 1000, 1));
    assert_true(is_live(&a));
    assert_true(reads <= 900 / LOG_BATCH_EVENTS + 1);
    post("x");
    assert_string_equal(received(&a), ids(1000, 1001, 1));
}

static void test_only_what_the_filter_wants_comes(void **state)
{
    (void)state;
    begin_again(ROOM, 1 << 20, LAG_MS);
    posts(600);
    resume(&a, "tea", id_at(0));
    resume(&b, "coffee", id_at(0));
    resume(&c, "milk", id_at(0));
    settle();
    assert_string_equal(received(&a), ids(1, 600, 2));
    assert_string_equal(received(&b), ids(2, 600, 2));
    assert_string_equal(received(&c), "");
    assert_true(is_live(&a) && is_live(&b) && is_live(&c));
}

static void test_batches_are_read_once_for_all(void **state)
{
    unsigned alone;

    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(1000);
    resume(&a, NULL, id_at(10));
    settle();
    alone = reads;
    begin_again(0, 1 << 20, LAG_MS);
    posts(1000);
    resume(&a, NULL, id_at(10));
    resume(&b, "tea", id_at(12));
    resume(&c, "coffee", id_at(30));
    settle();
    assert_true(reads <= alone + 2); /* b and c may not find their batch at once */
    assert_true(metric_get(metrics, METRIC_LOG_PAGES_USED) > 2 * reads);
    assert_string_equal(received(&b), ids(13, 1000, 2));
    assert_string_equal(received(&c), ids(32, 1000, 2));
}

/* Events that Pub/Sub has not passed yet are not read from the log. */
static void test_the_log_is_read_as_far_as_has_passed(void **state)
{
    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(5);
    for (int i = 0; i < 3; i++)
        publish("ahead");
    resume(&a, NULL, id_at(2));
    settle();
    assert_string_equal(received(&a), ids(3, 5, 1));
    assert_true(is_live(&a));
    for (int i = 0; i < 3; i++) {
        assert_true(pass_in(0));
        settle();
    }
    post("x");
    assert_string_equal(received(&a), ids(5, 9, 1));
}

/* The client got the newest event elsewhere, before it passes here. */
static void test_a_cursor_may_be_ahead_of_what_has_passed(void **state)
{
    (void)state;
    posts(5);
    publish("ahead");
    publish("further ahead");
    resume(&a, NULL, id_at(5));
    settle();
    assert_false(is_live(&a));
    pass_in(0);
    pass_in(0);
    settle();
    assert_string_equal(received(&a), ids(6, 7, 1));
    assert_true(is_live(&a));
}

/* The event passes here before the client's turn comes. */
static void test_the_event_of_a_cursor_that_was_ahead_is_not_sent_again(void **state)
{
    (void)state;
    posts(5);
    publish("ahead");
    resume(&a, NULL, id_at(5));
    pass_in(0);
    settle();
    assert_string_equal(received(&a), "");
    assert_true(is_live(&a));
    post("x");
    assert_string_equal(received(&a), ids(6, 7, 1));
}

/* A batch that was read before that event was logged does not prove that it does not exist. */
static void test_a_cursor_ahead_is_not_judged_by_an_old_batch(void **state)
{
    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(5);
    resume(&a, NULL, id_at(2)); /* leaves the log's last batch in the cache */
    settle();
    assert_int_equal(reads, 1);
    publish("seen elsewhere");
    publish("seen elsewhere, too");
    resume(&b, NULL, id_at(6));
    settle();
    pass_in(0);
    pass_in(0);
    settle();
    assert_string_equal(received(&b), "");
    post("x");
    assert_string_equal(received(&b), ids(7, 8, 1));
}

/* No event has this id; what happens before that time is new nevertheless. */
static void test_a_cursor_in_the_future_means_now(void **state)
{
    (void)state;
    posts(5);
    resume(&a, NULL, last_id + 1000 * SL_ID_PER_MS);
    settle();
    assert_true(is_live(&a));
    post("x");
    assert_string_equal(received(&a), ids(5, 6, 1));
}

static void test_a_cursor_is_a_position_between_events(void **state)
{
    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(10);
    resume(&a, NULL, id_at(4) - 1);
    resume(&b, NULL, id_at(4) + 1);
    resume(&c, NULL, 0);
    settle();
    assert_string_equal(received(&a), ids(4, 10, 1));
    assert_string_equal(received(&b), ids(5, 10, 1));
    assert_string_equal(received(&c), ids(0, 10, 1));
}

static void test_the_cursor_of_who_is_behind_follows_what_was_sent(void **state)
{
    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(1000);
    a.room = 5000;
    resume(&a, NULL, id_at(10));
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, id_at(10));
    settle();
    assert_false(is_live(&a));
    assert_true(a.awaits_writable);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id,
                     id_at(10 + a.client.sent_events)); /* what is held will be sent */
    resume(&b, "milk", id_at(10));                      /* matches none of it */
    settle();
    assert_int_equal(deliver_client_cursor(deliver, &b.client).id, id_at(999));
}

/* Only what the socket has accepted: a suspended client is sent nothing. */
static void test_nothing_is_sent_beyond_the_cursor_of_who_leaves(void **state)
{
    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(300);
    resume(&a, NULL, id_at(10));
    subscribe(&b, NULL);
    deliver_suspend(&a.client);
    deliver_suspend(&b.client);
    settle();
    post("x");
    assert_int_equal(a.sends + b.sends, 0);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, id_at(10));
}

/* --- falling behind --------------------------------------------------------------------------- */

/* Returns everything after the warning that it is behind. */
static const char *behind_warning(const char *got)
{
    const char *warning = strstr(got, "{\"type\":\"warning\",\"code\":\"behind\",\"events\":");

    assert_non_null(warning);
    return warning;
}

static void test_who_falls_behind_goes_on_in_the_ring(void **state)
{
    (void)state;
    begin_again(1 << 20, 4096, LAG_MS);
    subscribe(&a, NULL);
    subscribe(&b, "tea");
    a.room = b.room = 1000;
    posts(300);
    assert_false(is_live(&a) || is_live(&b));
    make_room(&a, FAKE_UNLIMITED);
    make_room(&b, FAKE_UNLIMITED);
    settle();
    check_all_but_warning(&a, ids(0, 300, 1));
    check_all_but_warning(&b, ids(1, 300, 2));
    assert_true(is_live(&a) && is_live(&b));
    assert_int_equal(reads, 0);
    post("tea");
    assert_string_equal(received(&a), ids(300, 301, 1));
    assert_string_equal(received(&b), ids(300, 301, 1));
}

/* It has everything, and its socket is full when the lane sends a keep-alive. */
static void test_who_falls_behind_a_keepalive_is_sent_nothing_twice(void **state)
{
    const struct sl_cursor *cursor;

    (void)state;
    begin_again(1 << 20, 4096, LAG_MS);
    a.client.encoding = ENCODING_DEFLATE;
    a.client.window_bits = 15;
    subscribe(&a, NULL);
    subscribe(&b, NULL);
    post_unlogged("bob"); /* only its sequence shows that it was sent */
    cursor = CURSOR(post("the first"));
    assert_false(deliver_keep_alive(&b.client, cursor)); /* it gets one of its own */
    a.room = 0;
    assert_true(deliver_keep_alive(&a.client, cursor));
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, cursor->id);
    posts(300);
    assert_false(is_live(&a));
    make_room(&a, FAKE_UNLIMITED);
    settle();
    assert_true(is_live(&a));
    assert_int_equal(a.client.sent_events, 302 + 1); /* including a warning */
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, id_at(300));
}

static void test_who_falls_further_behind_goes_on_in_the_log(void **state)
{
    (void)state;
    begin_again(ROOM, 4096, LAG_MS);
    subscribe(&a, NULL);
    subscribe(&b, "tea");
    a.room = b.room = 1000;
    posts(2000);
    make_room(&a, FAKE_UNLIMITED);
    make_room(&b, FAKE_UNLIMITED);
    settle();
    assert_true(reads > 0);
    check_all_but_warning(&a, ids(0, 2000, 1));
    check_all_but_warning(&b, ids(1, 2000, 2));
    assert_true(is_live(&a) && is_live(&b));
}

static void test_who_is_behind_is_warned_once(void **state)
{
    const char *got;
    unsigned long events;

    (void)state;
    begin_again(1 << 20, 4096, LAG_MS);
    subscribe(&a, NULL);
    for (int i = 0; i < 3; i++) {
        a.room = 0;
        posts(200);
        assert_false(is_live(&a));
        make_room(&a, FAKE_UNLIMITED);
        settle();
        assert_true(is_live(&a));
    }
    got = behind_warning(received(&a));
    assert_null(strstr(strchr(got, '}'), "warning"));
    assert_int_equal(sscanf(strstr(got, "events\":"), "events\":%lu", &events), 1);
    assert_int_equal(events, 200);
}

static void test_who_holds_out_for_ever_costs_little(void **state)
{
    (void)state;
    begin_again(ROOM, 4096, LAG_MS);
    subscribe(&a, NULL);
    a.room = 0;
    posts(3000);
    settle();
    assert_true(metric_get(metrics, METRIC_EVENT_BYTES) < 2 * ROOM);
    make_room(&a, 1000); /* takes one more step */
    settle();
    posts(900);
    settle();
    assert_true(metric_get(metrics, METRIC_EVENT_BYTES) < 4 * ROOM + (256 << 10));
}

static void test_who_does_not_read_for_too_long_is_too_slow(void **state)
{
    (void)state;
    begin_again(ROOM, 4096, 1); /* the log is 1,000 seconds old */
    subscribe(&a, NULL);
    a.room = 500;
    posts(300);
    resume(&b, NULL, id_at(10)); /* was this far behind when it connected */
    b.room = 500;
    while (a.evictions == 0) {
        uv_run(&loop, UV_RUN_ONCE);
        answer(0);
    }
    assert_int_equal(a.disconnect_reason, DISCONNECT_TOO_SLOW);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, id_at(a.client.sent_events - 1));
    assert_true(fake_client_lives(&b) || b.disconnect_reason == DISCONNECT_TOO_SLOW);
}

static void test_events_without_a_log_come_from_the_ring(void **state)
{
    (void)state;
    begin_again(1 << 20, 4096, LAG_MS);
    subscribe(&a, NULL);
    a.room = 0;
    posts(50);
    post_unlogged("bob");
    posts(50);
    make_room(&a, FAKE_UNLIMITED);
    settle();
    assert_true(is_live(&a));
    assert_int_equal(a.client.sent_events, 102); /* including the warning */
}

/* The id that clients see is the producer's. */
static void test_an_event_without_a_log_says_the_cursor(void **state)
{
    struct sl_slice ada = SL_SLICE("ada");
    struct home_sets sets = {.followed = {&ada, 1}};
    char said[SL_ID_TEXT_SIZE + 16];

    (void)state;
    subscribe(&a, NULL);
    post_unlogged("bob"); /* the log is still empty */
    assert_non_null(strstr(buffer_str(&a.received), "\"cursor\":\"10000000000000\"}\r\n"));
    posts(10);
    received(&a);
    resume(&b, NULL, id_at(4));
    home_on_load(deliver_home(deliver), on_load, NULL);
    assert_int_equal(
        deliver_subscribe_home(deliver, &c.client, SL_SLICE("eve"), 1u << SL_EVENT_POST, -1), 0);
    post("passes while the feed is loaded");
    post_unlogged("ada");
    settle();
    post("later");
    home_loaded(deliver_home(deliver), "eve", last_load, &sets);
    deliver_turn_end(deliver);
    snprintf(said, sizeof(said), "\"cursor\":\"%" PRIu64 "\"}\r\n", id_at(10));
    assert_non_null(strstr(buffer_str(&a.received), said));
    assert_non_null(strstr(buffer_str(&b.received), said));
    assert_non_null(strstr(buffer_str(&c.received), said));
}

static void test_events_without_a_log_that_are_gone_are_told_as_a_gap(void **state)
{
    const char *got, *gap;

    (void)state;
    begin_again(ROOM, 4096, LAG_MS);
    subscribe(&a, NULL);
    subscribe(&b, NULL);
    a.room = b.room = 0;
    posts(50);
    post_unlogged("bob");
    posts(500);
    make_room(&a, FAKE_UNLIMITED);
    settle();
    assert_true(is_live(&a));
    got = received(&a);
    gap = strstr(got, "{\"type\":\"gap\"");
    assert_non_null(gap);
    assert_non_null(strstr(gap, "\"reason\":\"unlogged\"}"));
    assert_null(strstr(strchr(gap, '}'), "gap"));
    assert_int_equal(a.client.sent_events, 550 + 2); /* including the warning and the gap */
}

static void test_a_resumed_client_gets_events_without_a_log_from_then_on(void **state)
{
    (void)state;
    posts(10);
    post_unlogged("bob");
    resume(&a, NULL, id_at(4));
    post_unlogged("bob");
    settle();
    assert_int_equal(a.client.sent_events, 5 + 1);
}

/* It had not been in the ring. */
static void test_a_gap_without_a_log_begins_where_the_client_came(void **state)
{
    char from[SL_ID_TEXT_SIZE + 16];
    const char *gap;

    (void)state;
    begin_again(ROOM, 4096, LAG_MS);
    posts(1000);
    resume(&a, NULL, id_at(4));
    post_unlogged("bob");
    posts(500);
    settle();
    gap = strstr(received(&a), "{\"type\":\"gap\"");
    assert_non_null(gap);
    snprintf(from, sizeof(from), "\"from\":\"%" PRIu64 "\"", id_at(4));
    assert_non_null(strstr(gap, from));
}

/* --- turns of the loop --------------------------------------------------------------------------
 */

enum { MANY = 600, SENDS_IN_A_TURN = 130 };

/* Each second the clients that wait for the log are sent the little that has gathered, but not all
 * in one turn. */
static void test_however_many_wait_a_turn_of_the_loop_is_short(void **state)
{
    static struct fake_client many[MANY];
    unsigned before = 0, after;

    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(300);
    for (size_t i = 0; i < MANY; i++) {
        fake_client_init(&many[i], FORMAT_NDJSON, head);
        resume(&many[i], "tea", id_at(10));
    }
    for (int i = 0; i < 1000; i++)
        turn();
    answer(0);
    do {
        uv_run(&loop, UV_RUN_ONCE);
        after = 0;
        for (size_t i = 0; i < MANY; i++)
            after += many[i].sends;
        assert_true(after - before <= SENDS_IN_A_TURN);
        before = after;
    } while (after < MANY);
    assert_true(logs[0].request.is_asked);
    settle();
    for (size_t i = 0; i < MANY; i++) {
        assert_string_equal(received(&many[i]), ids(11, 300, 2));
        leave(&many[i]);
    }
}

/* --- home and named rules --------------------------------------------------------------------- */

static void test_a_home_stream_resumes_with_the_graph_of_today(void **state)
{
    struct sl_slice ada = SL_SLICE("ada");
    struct home_sets sets = {.followed = {&ada, 1}};

    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    home_on_load(deliver_home(deliver), on_load, NULL);
    for (int i = 0; i < 300; i++) {
        publish_in(0, i % 3 ? "ada" : "eve", "x");
        pass_in(0);
    }
    assert_int_equal(
        deliver_subscribe_home(deliver, &a.client, SL_SLICE("bob"), 1u << SL_EVENT_POST, -1), 0);
    assert_int_equal(deliver_resume(deliver, &a.client, CURSOR(id_at(0))), 0);
    settle();
    assert_int_equal(a.client.sent_events, 0); /* the followed users are not known yet */
    home_loaded(deliver_home(deliver), "bob", last_load, &sets);
    settle();
    assert_int_equal(a.client.sent_events, 200);
    assert_true(is_live(&a));
}

static void put(struct rule_set *rules, const char *id, const char *track)
{
    struct sl_filter *filter = filter_of(track);

    assert_int_equal(rule_set_put(rules, sl_slice_str(id), SL_SLICE_NONE, filter), 0);
    sl_filter_unref(filter);
}

/* What has waited is sent in parts. */
static void test_who_falls_behind_when_the_feed_is_loaded_is_where_it_was_sent_to(void **state)
{
    struct sl_slice ada = SL_SLICE("ada");
    struct home_sets sets = {.followed = {&ada, 1}};
    char id[SL_ID_TEXT_SIZE];

    (void)state;
    begin_again(1 << 20, 4096, LAG_MS);
    home_on_load(deliver_home(deliver), on_load, NULL);
    post("before");
    assert_int_equal(
        deliver_subscribe_home(deliver, &a.client, SL_SLICE("bob"), 1u << SL_EVENT_POST, -1), 0);
    for (int i = 0; i < 100; i++) {
        publish_in(0, "ada", "x");
        pass_in(0);
    }
    a.room = 1000;
    home_loaded(deliver_home(deliver), "bob", last_load, &sets);
    assert_false(is_live(&a));
    snprintf(id, sizeof(id), "%" PRIu64, id_at(2));
    assert_non_null(strstr(buffer_str(&a.received), id));
    assert_true(deliver_client_cursor(deliver, &a.client).id >= id_at(2));
}

/* The feed is still being worked off when the client falls behind, and the ring has lost the rest
 * when it goes on. */
static void
test_who_falls_behind_when_the_feed_is_loaded_misses_nothing_of_other_shards(void **state)
{
    struct sl_slice ada = SL_SLICE("ada");
    struct home_sets sets = {.followed = {&ada, 1}};
    char id[SL_ID_TEXT_SIZE];

    (void)state;
    begin_again(32 << 10, 4096, LAG_MS);
    deliver_begin_shard(deliver, 0, 0);
    deliver_begin_shard(deliver, 1, 0);
    home_on_load(deliver_home(deliver), on_load, NULL);
    post("before");
    assert_int_equal(
        deliver_subscribe_home(deliver, &a.client, SL_SLICE("bob"), 1u << SL_EVENT_POST, -1), 0);
    for (int i = 0; i < 60; i++) {
        publish_in(0, "ada", "x");
        pass_in(0);
    }
    snprintf(id, sizeof(id), "%" PRIu64, publish_in(1, "ada", "x"));
    pass_in(1);
    a.room = 1000;
    home_loaded(deliver_home(deliver), "bob", last_load, &sets);
    assert_false(is_live(&a));
    posts(1000);
    make_room(&a, FAKE_UNLIMITED);
    settle();
    assert_non_null(strstr(received(&a), id));
}

static void test_named_rules_resume_when_they_are_there(void **state)
{
    struct rule_set *rules;

    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(300);
    fake_client_done(&a);
    fake_client_init(&a, FORMAT_WEBSOCKET, head);
    assert_int_equal(deliver_subscribe_rules(deliver, &a.client, -1, &rules), 0);
    assert_int_equal(deliver_resume(deliver, &a.client, CURSOR(id_at(0))), 0);
    settle();
    put(rules, "t", "tea");
    settle();
    assert_int_equal(a.client.sent_events, 0);
    put(rules, "c", "coffee");
    deliver_rules_ready(&a.client);
    settle();
    assert_int_equal(a.client.sent_events, 299);
    assert_true(is_live(&a));
    for (size_t i = 0; i < 2; i++) {
        static const char *const names[] = {"\"matching_rules\":[{\"id\":\"t\"}]}",
                                            "\"matching_rules\":[{\"id\":\"c\"}]}"};

        assert_non_null(memmem(a.received.data, a.received.size, names[i], strlen(names[i])));
    }
}

/* --- no memory -------------------------------------------------------------------------------- */

/* Reserves room, since receiving must not allocate while allocations fail. */
static void reserve(struct fake_client *client)
{
    assert_non_null(buffer_reserve(&client->received, 1 << 20));
}

/* Whichever allocation fails: a client gets everything, or is told where to resume. */
static void test_without_memory_nobody_misses_anything_in_silence(void **state)
{
    bool has_failed = true;

    (void)state;
    for (uint64_t n = 0; has_failed; n++) {
        uint64_t cursor;
        bool began;

        begin_again(0, 4096, LAG_MS);
        subscribe(&b, NULL);
        b.room = 0;
        posts(202);
        subscribe(&a, "tea");
        reserve(&a);
        mem_fail_after(n);
        began = deliver_resume(deliver, &a.client, CURSOR(id_at(0))) == 0;
        for (int i = 0; i < 10; i++) {
            turn();
            answer(0);
        }
        has_failed = mem_failed();
        mem_fail_never();
        while (logs[0].request.is_asked || (began && a.client.catcher && fake_client_lives(&a))) {
            uv_run(&loop, UV_RUN_ONCE);
            answer(0);
        }
        if (!began)
            continue;
        cursor = deliver_client_cursor(deliver, &a.client).id;
        if (fake_client_lives(&a))
            assert_string_equal(received(&a), ids(1, 202, 2));
        else
            assert_string_equal(received(&a),
                                ids(1, (size_t)((cursor - id_at(0)) / SL_ID_PER_MS) + 1, 2));
    }
}

static void test_who_cannot_fall_behind_for_lack_of_memory_has_to_go(void **state)
{
    (void)state;
    begin_again(ROOM, 4096, LAG_MS);
    subscribe(&a, NULL);
    reserve(&a);
    a.room = 0;
    while (fake_client_lives(&a) && is_live(&a)) {
        publish("x");
        pass_in(0);
        mem_fail_after(0); /* from here on only the flush */
        deliver_turn_end(deliver);
        mem_fail_never();
    }
    assert_int_equal(a.evictions, 1);
    assert_int_equal(a.disconnect_reason, DISCONNECT_INTERNAL);
    assert_int_equal(a.disconnect_cursor.id, id_at(0) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CATCH_UP_TEST(test_what_is_in_the_ring_needs_no_log),
        CATCH_UP_TEST(test_what_is_not_in_the_ring_comes_from_the_log),
        CATCH_UP_TEST(test_only_what_the_filter_wants_comes),
        CATCH_UP_TEST(test_batches_are_read_once_for_all),
        CATCH_UP_TEST(test_the_log_is_read_as_far_as_has_passed),
        CATCH_UP_TEST(test_a_cursor_may_be_ahead_of_what_has_passed),
        CATCH_UP_TEST(test_the_event_of_a_cursor_that_was_ahead_is_not_sent_again),
        CATCH_UP_TEST(test_a_cursor_ahead_is_not_judged_by_an_old_batch),
        CATCH_UP_TEST(test_a_cursor_in_the_future_means_now),
        CATCH_UP_TEST(test_a_cursor_is_a_position_between_events),
        CATCH_UP_TEST(test_the_cursor_of_who_is_behind_follows_what_was_sent),
        CATCH_UP_TEST(test_nothing_is_sent_beyond_the_cursor_of_who_leaves),
        CATCH_UP_TEST(test_who_falls_behind_goes_on_in_the_ring),
        CATCH_UP_TEST(test_who_falls_behind_a_keepalive_is_sent_nothing_twice),
        CATCH_UP_TEST(test_who_falls_further_behind_goes_on_in_the_log),
        CATCH_UP_TEST(test_who_is_behind_is_warned_once),
        CATCH_UP_TEST(test_who_holds_out_for_ever_costs_little),
        CATCH_UP_TEST(test_who_does_not_read_for_too_long_is_too_slow),
        CATCH_UP_TEST(test_events_without_a_log_come_from_the_ring),
        CATCH_UP_TEST(test_an_event_without_a_log_says_the_cursor),
        CATCH_UP_TEST(test_events_without_a_log_that_are_gone_are_told_as_a_gap),
        CATCH_UP_TEST(test_a_resumed_client_gets_events_without_a_log_from_then_on),
        CATCH_UP_TEST(test_a_gap_without_a_log_begins_where_the_client_came),
        CATCH_UP_TEST(test_however_many_wait_a_turn_of_the_loop_is_short),
        CATCH_UP_TEST(test_a_home_stream_resumes_with_the_graph_of_today),
        CATCH_UP_TEST(test_who_falls_behind_when_the_feed_is_loaded_is_where_it_was_sent_to),
        CATCH_UP_TEST(test_who_falls_behind_when_the_feed_is_loaded_misses_nothing_of_other_shards),
        CATCH_UP_TEST(test_named_rules_resume_when_they_are_there),
        CATCH_UP_TEST(test_without_memory_nobody_misses_anything_in_silence),
        CATCH_UP_TEST(test_who_cannot_fall_behind_for_lack_of_memory_has_to_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
