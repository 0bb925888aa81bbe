#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/stable_hash.h"
#include "filters/filter.h"
#include "filters/words.h"
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/deliver_parts.h"
#include "gateway/delivery/frame.h"
#include "gateway/delivery/home.h"
#include "gateway/delivery/outbox.h"
#include "gateway/delivery/rule_set.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/events.h"
#include "tests/support/fake_client.h"
#include "tests/support/filter_try.h"
#include "tests/support/test_loop.h"

enum { GATHER_MS = 20, HOUR_MS = 3600000, POSTS = 1u << SL_EVENT_POST | 1u << SL_EVENT_DELETE };

static struct test_loop test_loop;
static struct metrics_board *board;
static struct metrics *metrics;
static struct deliver *deliver;
static bool has_ring; /* it keeps events even if they are owed to nobody */
static struct fake_client a, b, c;
static uint64_t last_load; /* number of the last request to load a home; 0: none */

static struct sl_cursor head(void)
{
    return deliver_cursor(deliver);
}

static void on_load(void *owner, const char *user, uint64_t load)
{
    (void)owner;
    (void)user;
    last_load = load;
}

static struct deliver_settings settings_of(uint32_t gather_ms, size_t max_owed_bytes)
{
    return (struct deliver_settings){.loop = &test_loop.uv,
                                     .metrics = metrics,
                                     .gather_ms = gather_ms,
                                     .max_owed_bytes = max_owed_bytes,
                                     .max_event_bytes = 1 << 30,
                                     .max_home_bytes = 1 << 30};
}

static int begin_with(const struct deliver_settings *settings)
{
    deliver = deliver_new(settings);
    if (!deliver)
        return -1;
    last_load = 0;
    has_ring = settings->ring_bytes > 0;
    home_on_load(deliver_home(deliver), on_load, NULL);
    fake_client_init(&a, FORMAT_NDJSON, head);
    fake_client_init(&b, FORMAT_NDJSON, head);
    fake_client_init(&c, FORMAT_NDJSON, head);
    return 0;
}

static int begin(void **state)
{
    struct deliver_settings settings;

    (void)state;
    test_loop_init(&test_loop, NULL);
    board = metrics_board_new(1);
    metrics = metrics_slot(board, 0);
    settings = settings_of(GATHER_MS, 1 << 20);
    return begin_with(&settings);
}

static void leave(struct fake_client *client)
{
    deliver_leave(&client->client);
    fake_client_done(client);
}

static void end_deliver(void)
{
    leave(&a);
    leave(&b);
    leave(&c);
    deliver_turn_end(deliver);
    assert_true(has_ring || metric_get(metrics, METRIC_EVENT_BYTES) == 0); /* nothing is kept */
    deliver_free(deliver);
}

static int end(void **state)
{
    (void)state;
    end_deliver();
    test_loop_done(&test_loop);
    metrics_board_free(board);
    return 0;
}

/* Starts again with other settings. */
static void begin_again(uint32_t gather_ms, size_t max_owed_bytes)
{
    struct deliver_settings settings = settings_of(gather_ms, max_owed_bytes);

    end_deliver();
    assert_int_equal(begin_with(&settings), 0);
}

static struct sl_filter *filter_of(const char *track, const char *types)
{
    struct sl_filter_text text = {
        .track = sl_slice_str(track), .types = sl_slice_str(types), .firehose = !track};
    struct sl_filter_error error;
    struct sl_filter *filter;

    if (sl_filter_new(&text, &SL_FILTER_LIMITS_DEFAULT, &filter, &error) < 0)
        fail_msg("filter refused: %s", error.message);
    return filter;
}

static void subscribe_to(struct fake_client *client, const char *track, int gather_ms)
{
    struct sl_filter *filter = filter_of(track, NULL);

    assert_int_equal(deliver_subscribe(deliver, &client->client, filter, gather_ms), 0);
    sl_filter_unref(filter);
}

static void subscribe(struct fake_client *client, const char *track)
{
    subscribe_to(client, track, -1);
}

static void event_take(struct event *event)
{
    deliver_event(deliver, event);
    event_unref(event);
}

static void post(uint64_t id, const char *text)
{
    event_take(event_post(id, "ada", text));
}

/* Posts in a turn of its own. */
static void post_alone(uint64_t id, const char *text)
{
    post(id, text);
    deliver_turn_end(deliver);
}

static void make_room(struct fake_client *client, size_t bytes)
{
    if (fake_client_make_room(client, bytes))
        deliver_client_writable(&client->client);
}

/* Runs the loop until the client receives something. Time passes only here: uv_now() does not
 * change between two turns. */
static void await_window(struct fake_client *client)
{
    RUN_UNTIL(&test_loop, client->received.size > 0);
}

/* Fails unless the client has received, since the last call, events with exactly these ids,
 * separated by spaces. */
static void expect_ids(struct fake_client *client, const char *expected)
{
    static const char begins[] = "{\"id\":\"";
    char ids[1024] = "";
    const char *at;

    assert_non_null(buffer_str(&client->received));
    at = client->received.data;
    while ((at = strstr(at, begins))) {
        size_t digits = strspn(at += strlen(begins), "0123456789");

        if (strncmp(at + digits, "\",\"type\"", 8) != 0)
            continue;
        assert_true(strlen(ids) + digits + 2 < sizeof(ids));
        if (ids[0])
            strcat(ids, " ");
        strncat(ids, at, digits);
    }
    assert_string_equal(ids, expected);
    buffer_clear(&client->received);
}

/* --- which clients are owed something --------------------------------------------------------- */

static void note_owed(void *owner, struct client *client)
{
    char *names = owner;

    strcat(names, client == &a.client ? "a" : client == &b.client ? "b" : "c");
}

static void expect_owed(const char *expected)
{
    char names[16] = "";

    deliver_visit_owed(deliver, note_owed, names);
    assert_string_equal(names, expected);
}

static void test_only_those_who_are_owed_something_are_visited(void **state)
{
    (void)state;
    subscribe(&a, "coffee");
    subscribe(&b, "tea");
    subscribe(&c, "tea");
    expect_owed("");
    post_alone(1, "coffee");
    expect_owed("");
    post_alone(2, "coffee"); /* it is gathered */
    expect_owed("a");
    deliver_flush_all(deliver);
    expect_owed("");
}

static void test_who_is_behind_is_visited_until_it_has_everything(void **state)
{
    (void)state;
    subscribe_to(&a, "tea", 0);
    subscribe_to(&b, "tea", 0);
    a.room = 10;
    post_alone(1, "tea");
    expect_owed("a");
    make_room(&a, FAKE_UNLIMITED);
    expect_owed("");
    a.room = 10;
    post_alone(2, "tea");
    leave(&a);
    expect_owed("");
    fake_client_init(&a, FORMAT_NDJSON, head);
    leave(&b);
    fake_client_init(&b, FORMAT_NDJSON, head);
    expect_owed("");
}

/* --- who gets what ---------------------------------------------------------------------------- */

static void test_events_go_to_those_whose_filter_matches(void **state)
{
    (void)state;
    subscribe(&a, "coffee");
    subscribe(&b, "tea");
    subscribe(&c, NULL);
    post(1, "a cup of coffee");
    post(2, "a cup of tea");
    post(3, "coffee and tea");
    post(4, "water");
    event_take(event_graph(5, "follow", "ada", "bob")); /* nobody requested its type */
    event_take(event_graph(6, "hide", "ada", "bob"));
    deliver_turn_end(deliver);
    expect_ids(&a, "1 3");
    expect_ids(&b, "2 3");
    expect_ids(&c, "1 2 3 4");
    assert_int_equal(metric_get(metrics, METRIC_MATCHES), 8);
    assert_int_equal(metric_get(metrics, METRIC_DELIVERIES), 8);
    assert_int_equal(metric_get(metrics, METRIC_SENDS), 3);
    assert_int_equal(deliver_cursor(deliver).id, 6);
}

static void test_equal_filters_cost_one_append(void **state)
{
    (void)state;
    subscribe(&a, "coffee,tea");
    subscribe(&b, "TEA,coffee");
    subscribe(&c, "coffee");
    assert_ptr_equal(a.client.outbox, b.client.outbox);
    assert_ptr_not_equal(a.client.outbox, c.client.outbox);
    post_alone(1, "coffee");
    expect_ids(&a, "1");
    expect_ids(&b, "1");
    expect_ids(&c, "1");
    assert_int_equal(metric_get(metrics, METRIC_MATCHES), 2);
    assert_int_equal(metric_get(metrics, METRIC_DELIVERIES), 3);
}

static void test_clients_framed_or_gathered_otherwise_share_nothing(void **state)
{
    (void)state;
    c.client.unchunked = true;
    b.client.format = FORMAT_SSE;
    subscribe(&a, "coffee");
    subscribe(&b, "coffee");
    subscribe(&c, "coffee");
    assert_ptr_not_equal(a.client.outbox, b.client.outbox);
    assert_ptr_not_equal(a.client.outbox, c.client.outbox);
    deliver_leave(&c.client);
    c.client.unchunked = false;
    subscribe_to(&c, "coffee", GATHER_MS + 1);
    assert_ptr_not_equal(a.client.outbox, c.client.outbox);
    deliver_leave(&c.client);
    subscribe(&c, "coffee");
    assert_ptr_equal(a.client.outbox, c.client.outbox);
}

/* Fails unless exactly this JSON was received since the last call, as a WebSocket message. */
static void expect_message(struct fake_client *client, const char *json)
{
    struct buffer frame = BUFFER_INIT;

    frame_append_message(&frame, FORMAT_WEBSOCKET, "", sl_slice_str(json));
    assert_int_equal(client->received.size, frame.size);
    assert_memory_equal(client->received.data, frame.data, frame.size);
    buffer_clear(&client->received);
    buffer_done(&frame);
}

static void subscribe_with_tail(struct fake_client *client, const char *tail)
{
    client->client.format = FORMAT_WEBSOCKET;
    client->client.tail = sl_slice_str(tail);
    subscribe(client, "coffee");
}

static void test_clients_whose_messages_end_alike_share_a_lane(void **state)
{
    char tail[] = ",\"stream\":\"x\"";
    struct event *event = event_post(1, "ada", "coffee");
    const struct gap gap = {0, 5, 9, GAP_RETENTION};
    char expected[1024];

    (void)state;
    subscribe_with_tail(&a, tail);
    subscribe_with_tail(&b, ",\"stream\":\"x\"");
    subscribe_with_tail(&c, ",\"stream\":\"xy\"");
    assert_ptr_equal(a.client.outbox, b.client.outbox);
    assert_ptr_not_equal(a.client.outbox, c.client.outbox);
    deliver_leave(&a.client);
    memset(tail, 'z', sizeof(tail) - 1); /* it was the first client; the lane has a copy */
    post_alone(1, "coffee");
    snprintf(expected, sizeof(expected), "%.*s,\"stream\":\"x\"}", (int)event->json.size - 1,
             event->json.data);
    expect_message(&b, expected);
    snprintf(expected, sizeof(expected), "%.*s,\"stream\":\"xy\"}", (int)event->json.size - 1,
             event->json.data);
    expect_message(&c, expected);
    deliver_gap(deliver, &gap);
    deliver_flush_all(deliver);
    expect_message(&b, "{\"type\":\"gap\",\"from\":\"5\",\"to\":\"9\",\"reason\":\"retention\","
                       "\"stream\":\"x\"}");
    event_unref(event);
}

static void test_a_lane_goes_with_its_last_client(void **state)
{
    (void)state;
    subscribe(&a, "coffee");
    subscribe(&b, "coffee");
    deliver_leave(&a.client);
    deliver_leave(&a.client);
    post_alone(1, "coffee");
    expect_ids(&a, "");
    expect_ids(&b, "1");
    post(2, "coffee");
    deliver_leave(&b.client); /* is owed something in this turn */
    deliver_turn_end(deliver);
    post_alone(3, "coffee");
    expect_ids(&b, "");
    assert_int_equal(metric_get(metrics, METRIC_MATCHES), 2);
    subscribe(&b, "coffee");
    post_alone(4, "coffee");
    expect_ids(&b, "4");
}

static void test_the_cursor_is_the_newest_id_seen(void **state)
{
    (void)state;
    assert_int_equal(deliver_cursor(deliver).id, 0);
    post(7, "x");
    post(0, "x");
    post(5, "x");
    assert_int_equal(deliver_cursor(deliver).id, 7);
}

/* --- flushing --------------------------------------------------------------------------------- */

static void test_a_quiet_client_gets_an_event_at_once_and_later_ones_together(void **state)
{
    uint64_t began_ms = uv_now(&test_loop.uv);

    (void)state;
    subscribe(&a, NULL);
    post_alone(1, "x");
    expect_ids(&a, "1");
    post_alone(2, "x");
    post_alone(3, "x");
    expect_ids(&a, "");
    await_window(&a);
    expect_ids(&a, "2 3");
    assert_int_equal(a.sends, 2);
    assert_true(a.client.outbox->last_flush_ms - began_ms >= GATHER_MS);
    assert_false(uv_loop_alive(&test_loop.uv)); /* no timer runs while nothing is gathered */
}

/* However short the uptime of the machine: the loop's time begins with it. */
static void test_the_first_event_waits_for_nobody(void **state)
{
    (void)state;
    subscribe_to(&a, NULL, INT_MAX);
    post_alone(1, "x");
    expect_ids(&a, "1");
}

static void test_what_was_gathered_opens_a_window_too(void **state)
{
    (void)state;
    subscribe(&a, NULL);
    post_alone(1, "x");
    post_alone(2, "x");
    a.client.outbox->last_flush_ms -= GATHER_MS; /* as if the loop had run that long */
    deliver_flush_all(deliver);
    expect_ids(&a, "1 2");
    post_alone(3, "x");
    expect_ids(&a, "");
    await_window(&a);
    expect_ids(&a, "3");
}

static void test_a_client_is_quiet_again_when_a_window_has_passed(void **state)
{
    uint64_t flushed_ms;

    (void)state;
    subscribe_to(&a, NULL, 2);
    post_alone(1, "x");
    expect_ids(&a, "1");
    flushed_ms = uv_now(&test_loop.uv);
    while (uv_now(&test_loop.uv) - flushed_ms < 2)
        uv_update_time(&test_loop.uv);
    post_alone(2, "x");
    expect_ids(&a, "2");
}

static void test_without_gathering_every_turn_is_sent(void **state)
{
    (void)state;
    subscribe_to(&a, NULL, 0);
    post_alone(1, "x");
    expect_ids(&a, "1");
    post(2, "x");
    post_alone(3, "x");
    expect_ids(&a, "2 3");
    assert_int_equal(a.sends, 2);
}

static void test_shorter_windows_end_first(void **state)
{
    (void)state;
    subscribe_to(&a, "tea", HOUR_MS);
    subscribe_to(&b, "tea,coffee", 5);
    subscribe_to(&c, "tea", 15);
    post_alone(1, "tea");
    expect_ids(&a, "1");
    expect_ids(&b, "1");
    expect_ids(&c, "1");
    post_alone(2, "tea"); /* the longest gather time is queued first */
    await_window(&b);
    expect_ids(&b, "2");
    await_window(&c);
    expect_ids(&c, "2");
    assert_true(c.client.last_sent_ms >= b.client.last_sent_ms);
    post_alone(3, "coffee"); /* while the longest one waits */
    post_alone(4, "coffee");
    RUN_UNTIL(&test_loop, b.client.sent_events == 4);
    expect_ids(&b, "3 4");
    expect_ids(&a, "");
    deliver_flush_all(deliver);
    expect_ids(&a, "2");
}

static void test_a_client_that_joins_in_a_window_gets_later_events_only(void **state)
{
    (void)state;
    subscribe(&a, NULL);
    post_alone(1, "x");
    post_alone(2, "x");
    subscribe(&b, NULL);
    assert_ptr_equal(a.client.outbox, b.client.outbox);
    post_alone(3, "x");
    uv_run(&test_loop.uv, UV_RUN_DEFAULT);
    expect_ids(&a, "1 2 3");
    expect_ids(&b, "3");
}

static void test_a_lane_may_go_while_it_gathers(void **state)
{
    (void)state;
    subscribe(&a, NULL);
    subscribe_to(&b, NULL, GATHER_MS * 2);
    post_alone(1, "x");
    post_alone(2, "x");
    deliver_leave(&a.client); /* the one for which the timer was set */
    uv_run(&test_loop.uv, UV_RUN_DEFAULT);
    expect_ids(&a, "1");
    expect_ids(&b, "1 2");
    post_alone(3, "x");
    deliver_leave(&b.client); /* the last one */
    uv_run(&test_loop.uv, UV_RUN_DEFAULT);
    subscribe(&c, NULL);
    post_alone(4, "x");
    post_alone(5, "x");
    uv_run(&test_loop.uv, UV_RUN_DEFAULT);
    expect_ids(&c, "4 5");
}

static void test_what_is_gathered_can_be_sent_at_once(void **state)
{
    (void)state;
    subscribe(&a, NULL);
    post_alone(1, "x");
    post_alone(2, "x");
    post(3, "x");
    deliver_flush_all(deliver);
    expect_ids(&a, "1 2 3");
    assert_false(uv_loop_alive(&test_loop.uv));
}

/* Otherwise a client that reads everything at once would appear to be owed too much. */
static void test_a_window_ends_early_when_much_is_gathered(void **state)
{
    static const size_t max_owed[] = {8192, 1 << 20};
    uint64_t id = 1;
    char text[1000];

    (void)state;
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    for (size_t i = 0; i < 2; i++) {
        size_t most = max_owed[i] / 2 < 65536 ? max_owed[i] / 2 : 65536;

        begin_again(HOUR_MS, max_owed[i]);
        subscribe(&a, NULL);
        post_alone(id++, "x");
        a.room = most / 2; /* takes the rest later */
        while (a.received.size < (1 << 20)) {
            unsigned sends = a.sends;

            post(id++, text);
            assert_true(outbox_gathered_bytes(a.client.outbox) <= most);
            if (a.sends > sends) {
                post(id++, "x"); /* gathered again, in the same turn */
                make_room(&a, 2 * most);
            }
            if (id % 3)
                deliver_turn_end(deliver);
        }
        assert_true(fake_client_lives(&a));
        assert_true(a.sends <= 4 * (1 << 20) / most);
    }
}

/* --- slow clients ----------------------------------------------------------------------------- */

static void test_a_client_owed_too_much_goes_on_by_itself_and_others_do_not_notice(void **state)
{
    struct deliver_settings settings = settings_of(0, 4096);

    (void)state;
    settings.ring_bytes = 1 << 20;
    end_deliver();
    assert_int_equal(begin_with(&settings), 0);
    subscribe(&a, NULL);
    subscribe(&b, NULL);
    a.room = 0;
    for (uint64_t id = 1; id <= 100; id++)
        post_alone(id, "x");
    assert_true(fake_client_lives(&a));
    assert_non_null(a.client.catcher);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, 0);
    assert_int_equal(metric_get(metrics, METRIC_CATCHING_UP), 1);
    assert_int_equal(metric_get(metrics, METRIC_FALLEN_BEHIND), 1);
    assert_true(fake_client_lives(&b));
    assert_int_equal(b.client.sent_events, 100);
    make_room(&a, FAKE_UNLIMITED);
    RUN_UNTIL(&test_loop, !a.client.catcher);
    assert_int_equal(metric_get(metrics, METRIC_CATCHING_UP), 0);
    assert_int_equal(a.client.sent_events, 101); /* including the warning */
    post_alone(101, "y");
    assert_int_equal(a.client.sent_events, 102);
}

static void test_a_slow_client_catches_up_when_its_socket_has_room(void **state)
{
    (void)state;
    begin_again(0, 1 << 20);
    subscribe(&a, NULL);
    a.room = 50;
    for (uint64_t id = 1; id <= 5; id++)
        post_alone(id, "x");
    while (a.client.sent_events < 5)
        make_room(&a, 33);
    make_room(&a, FAKE_UNLIMITED);
    expect_ids(&a, "1 2 3 4 5");
    assert_int_equal(metric_get(metrics, METRIC_DELIVERIES), 5);
    assert_int_equal(metric_get(metrics, METRIC_SENDS), a.sends);
}

static void test_all_queues_are_dropped_when_together_they_keep_too_much(void **state)
{
    struct deliver_settings settings = settings_of(0, 1 << 20);

    (void)state;
    settings.max_event_bytes = 10000;
    end_deliver();
    assert_int_equal(begin_with(&settings), 0);
    subscribe(&a, "coffee");
    subscribe(&b, "tea");
    subscribe(&c, "tea");
    a.room = b.room = 0;
    for (uint64_t id = 1; id < 100 && !a.client.catcher; id++)
        post_alone(id, id % 2 ? "coffee" : "tea");
    assert_non_null(a.client.catcher);
    assert_non_null(b.client.catcher);
    assert_null(c.client.catcher);
    assert_int_equal(metric_get(metrics, METRIC_EVENT_BYTES_EXCEEDED), 1);
    deliver_turn_end(deliver);
    assert_int_equal(metric_get(metrics, METRIC_EVENT_BYTES), 0);
}

/* --- named rules ------------------------------------------------------------------------------ */

/* A client that has left gets nothing any more; the index forgets its filters in slices, which are
 * limited by their bytes. */
static void leave_and_count_turns(unsigned rules_count, unsigned users, size_t *ret_turns,
                                  size_t *ret_most)
{
    struct sl_filter_index_stats stats;
    struct rule_set *rules;
    uint64_t before;

    a.client.format = FORMAT_WEBSOCKET;
    assert_int_equal(deliver_subscribe_rules(deliver, &a.client, 0, &rules), 0);
    for (unsigned rule = 0; rule < rules_count; rule++) {
        struct buffer follow = BUFFER_INIT;
        struct sl_filter *filter;
        char id[16];

        for (unsigned user = 0; user < users; user++)
            buffer_append_format(&follow, "%s%ux%u", user > 0 ? "," : "", rule, user);
        filter = TRY_FILTER(.follow = buffer_slice(&follow));
        snprintf(id, sizeof(id), "%u", rule);
        assert_int_equal(rule_set_put(rules, sl_slice_str(id), SL_SLICE_NONE, filter), 0);
        sl_filter_unref(filter);
        buffer_done(&follow);
    }
    deliver_leave(&a.client);
    *ret_turns = *ret_most = 0;
    do {
        sl_filter_index_stats(deliver->index, &stats);
        before = stats.subscriptions;
        uv_run(&test_loop.uv, UV_RUN_NOWAIT);
        sl_filter_index_stats(deliver->index, &stats);
        if (before - stats.subscriptions > *ret_most)
            *ret_most = before - stats.subscriptions;
        ++*ret_turns;
    } while (stats.subscriptions > 0);
    assert_int_equal(stats.cost, 0);
}

static void test_many_large_rules_are_forgotten_one_in_a_turn(void **state)
{
    size_t turns, most;

    (void)state;
    leave_and_count_turns(25, 5000, &turns, &most);
    assert_int_equal(most, 1);
    assert_int_equal(turns, 25);
}

static void test_rules_that_are_not_yet_forgotten_get_nothing(void **state)
{
    struct rule_set *rules;
    struct sl_filter *filter = TRY_FILTER(.track = SL_SLICE("kite"));

    (void)state;
    subscribe(&b, "kite");
    a.client.format = FORMAT_WEBSOCKET;
    assert_int_equal(deliver_subscribe_rules(deliver, &a.client, 0, &rules), 0);
    assert_int_equal(rule_set_put(rules, SL_SLICE("one"), SL_SLICE_NONE, filter), 0);
    sl_filter_unref(filter);
    deliver_leave(&a.client);
    post_alone(7, "kite");
    assert_int_equal(metric_get(metrics, METRIC_MATCHES), 1);
    expect_ids(&b, "7");
    assert_int_equal(a.received.size, 0);
}

static void test_small_rules_are_forgotten_many_in_a_turn(void **state)
{
    size_t turns, most;

    (void)state;
    leave_and_count_turns(4000, 1, &turns, &most);
    assert_in_range(most, 100, BINDING_TURN_BYTES / 200);
    assert_true(turns >= 4000 / most);
}

static void put(struct rule_set *rules, const char *id, const char *tag, const char *track)
{
    struct sl_filter *filter = filter_of(track, NULL);

    assert_int_equal(rule_set_put(rules, sl_slice_str(id), sl_slice_str(tag), filter), 0);
    sl_filter_unref(filter);
}

static struct rule_set *subscribe_rules(struct fake_client *client)
{
    struct rule_set *rules;

    client->client.format = FORMAT_WEBSOCKET;
    assert_int_equal(deliver_subscribe_rules(deliver, &client->client, 0, &rules), 0);
    return rules;
}

/* Fails unless exactly this post was received since the last call, with these matching rules; "":
 * nothing was received. */
static void expect_rules(struct fake_client *client, uint64_t id, const char *text,
                         const char *rules)
{
    struct event *event = event_post(id, "ada", text);
    struct buffer json = BUFFER_INIT, frame = BUFFER_INIT;

    if (rules[0]) {
        buffer_append(&json, event->json.data, event->json.size - 1);
        buffer_append_format(&json, ",\"matching_rules\":[%s]}", rules);
        frame_append_message(&frame, FORMAT_WEBSOCKET, "", buffer_slice(&json));
    }
    assert_int_equal(client->received.size, frame.size);
    assert_memory_equal(buffer_slice(&client->received).data, buffer_slice(&frame).data,
                        frame.size);
    buffer_clear(&client->received);
    buffer_done(&json);
    buffer_done(&frame);
    event_unref(event);
}

static void test_an_event_names_the_rules_it_matched_in_their_order(void **state)
{
    struct rule_set *rules = subscribe_rules(&a);

    (void)state;
    put(rules, "first", NULL, "coffee,milk");
    put(rules, "second", "hot", "tea,milk");
    put(rules, "third", "", "milk");
    post_alone(1, "milk");
    expect_rules(&a, 1, "milk",
                 "{\"id\":\"first\"},{\"id\":\"second\",\"tag\":\"hot\"},"
                 "{\"id\":\"third\",\"tag\":\"\"}");
    post_alone(2, "tea");
    expect_rules(&a, 2, "tea", "{\"id\":\"second\",\"tag\":\"hot\"}");
    post_alone(3, "water");
    expect_rules(&a, 3, "water", "");
    post_alone(4, "coffee");
    expect_rules(&a, 4, "coffee", "{\"id\":\"first\"}");
    assert_int_equal(a.client.sent_events, 3);
}

static void test_names_and_tags_are_escaped(void **state)
{
    struct rule_set *rules = subscribe_rules(&a);

    (void)state;
    put(rules, "a\"b\\", "\n\x01\xc3\xa9", "x");
    post_alone(1, "x");
    expect_rules(&a, 1, "x", "{\"id\":\"a\\\"b\\\\\",\"tag\":\"\\n\\u0001\xc3\xa9\"}");
}

static void test_a_rule_that_is_put_again_is_replaced_and_comes_last(void **state)
{
    struct rule_set *rules = subscribe_rules(&a);

    (void)state;
    put(rules, "one", "old", "tea");
    put(rules, "two", NULL, "tea");
    put(rules, "one", "new", "tea");
    assert_int_equal(rule_set_count(rules), 2);
    post_alone(1, "tea");
    expect_rules(&a, 1, "tea", "{\"id\":\"two\"},{\"id\":\"one\",\"tag\":\"new\"}");
    put(rules, "two", NULL, "coffee");
    post_alone(2, "tea");
    expect_rules(&a, 2, "tea", "{\"id\":\"one\",\"tag\":\"new\"}");
    post_alone(3, "coffee");
    expect_rules(&a, 3, "coffee", "{\"id\":\"two\"}");
}

static void test_rules_can_be_listed_and_removed(void **state)
{
    struct rule_set *rules = subscribe_rules(&a);

    (void)state;
    put(rules, "one", NULL, "tea");
    put(rules, "two", "t", "tea");
    put(rules, "three", NULL, "tea");
    assert_true(rule_set_has(rules, SL_SLICE("two")));
    assert_false(rule_set_has(rules, SL_SLICE("tw")));
    assert_string_equal(rule_set_at(rules, 1)->id, "two");
    assert_string_equal(rule_set_at(rules, 1)->tag, "t");
    assert_null(rule_set_at(rules, 2)->tag);
    assert_null(rule_set_at(rules, 3));
    assert_int_equal(rule_set_remove(rules, SL_SLICE("two")), 0);
    assert_int_equal(rule_set_remove(rules, SL_SLICE("two")), -ENOENT);
    assert_int_equal(rule_set_count(rules), 2);
    post_alone(1, "tea");
    expect_rules(&a, 1, "tea", "{\"id\":\"one\"},{\"id\":\"three\"}");
    assert_int_equal(rule_set_remove(rules, SL_SLICE("one")), 0);
    assert_int_equal(rule_set_remove(rules, SL_SLICE("three")), 0);
    post_alone(2, "tea");
    expect_rules(&a, 2, "tea", "");
}

static void test_rules_of_several_clients_keep_apart(void **state)
{
    struct rule_set *of_a = subscribe_rules(&a), *of_b = subscribe_rules(&b);

    (void)state;
    put(of_a, "x", "a", "tea");
    put(of_b, "x", "b", "tea");
    subscribe(&c, "tea");
    post_alone(1, "tea");
    expect_rules(&a, 1, "tea", "{\"id\":\"x\",\"tag\":\"a\"}");
    expect_rules(&b, 1, "tea", "{\"id\":\"x\",\"tag\":\"b\"}");
    expect_ids(&c, "1");
    deliver_leave(&a.client);
    post(2, "tea");
    deliver_turn_end(deliver);
    expect_rules(&a, 2, "tea", "");
    expect_rules(&b, 2, "tea", "{\"id\":\"x\",\"tag\":\"b\"}");
}

static void test_without_memory_a_rule_is_not_put_and_the_old_one_stays(void **state)
{
    struct rule_set *rules = subscribe_rules(&a);
    struct sl_filter *filter = filter_of("coffee", NULL);
    int r = -ENOMEM;

    (void)state;
    put(rules, "one", "old", "tea");
    for (uint64_t n = 0; r < 0; n++) {
        mem_fail_after(n);
        r = rule_set_put(rules, SL_SLICE("one"), SL_SLICE("new"), filter);
        mem_fail_never();
        assert_int_equal(r, r < 0 ? -ENOMEM : 0);
        assert_int_equal(rule_set_count(rules), 1);
        post_alone(n + 1, "tea");
        expect_rules(&a, n + 1, "tea", r < 0 ? "{\"id\":\"one\",\"tag\":\"old\"}" : "");
        post_alone(n + 1, "coffee");
        expect_rules(&a, n + 1, "coffee", r < 0 ? "" : "{\"id\":\"one\",\"tag\":\"new\"}");
    }
    sl_filter_unref(filter);
}

/* --- home ------------------------------------------------------------------------------------- */

static int subscribe_home(struct fake_client *client, const char *user)
{
    return deliver_subscribe_home(deliver, &client->client, sl_slice_str(user), POSTS, 0);
}

static void answer_load(const struct sl_slice *followed, size_t count)
{
    home_loaded(deliver_home(deliver), "bob", last_load,
                &(struct home_sets){.followed = {followed, count}});
}

static void test_a_home_stream_begins_with_what_passed_while_its_set_was_read(void **state)
{
    struct sl_slice ada = SL_SLICE("ada");

    (void)state;
    assert_int_equal(subscribe_home(&a, "bob"), 0);
    assert_int_equal(subscribe_home(&b, "bob"), 0);
    assert_ptr_equal(a.client.outbox, b.client.outbox);
    subscribe(&c, NULL);
    post_alone(1, "x");
    expect_ids(&a, "");
    assert_false(outbox_client_is_served(&a.client));
    answer_load(&ada, 1);
    deliver_turn_end(deliver);
    expect_ids(&a, "1");
    expect_ids(&b, "1");
    expect_ids(&c, "1");
    assert_true(outbox_client_is_served(&a.client));
    post_alone(2, "x");
    expect_ids(&a, "2");
}

static void test_home_lanes_are_shared_by_user_and_types(void **state)
{
    (void)state;
    assert_int_equal(subscribe_home(&a, "bob"), 0);
    assert_int_equal(subscribe_home(&b, "bob "), 0);
    assert_int_equal(deliver_subscribe_home(deliver, &c.client, SL_SLICE("bob"), 1, 0), 0);
    assert_ptr_not_equal(a.client.outbox, b.client.outbox);
    assert_ptr_not_equal(a.client.outbox, c.client.outbox);
}

static void
test_clients_of_a_feed_that_fails_are_told_a_cursor_before_what_they_missed(void **state)
{
    (void)state;
    post(40, "x");
    assert_int_equal(subscribe_home(&a, "bob"), 0);
    post_alone(50, "x");
    assert_int_equal(deliver_cursor(deliver).id, 50);
    home_load_failed(deliver_home(deliver), "bob", last_load);
    assert_int_equal(a.evictions, 1);
    assert_int_equal(a.disconnect_reason, DISCONNECT_INTERNAL);
    assert_int_equal(a.disconnect_cursor.id, 40);
    assert_false(outbox_client_is_served(&a.client));
}

static void test_who_comes_after_a_feed_failed_gets_a_new_one(void **state)
{
    uint64_t failed_load;

    (void)state;
    assert_int_equal(subscribe_home(&a, "bob"), 0);
    failed_load = last_load;
    home_load_failed(deliver_home(deliver), "bob", failed_load);
    assert_int_equal(subscribe_home(&b, "bob"), 0); /* before the other one has left */
    assert_ptr_not_equal(a.client.outbox, b.client.outbox);
    assert_int_equal(last_load, failed_load + 1);
    deliver_leave(&a.client);
    answer_load(NULL, 0);
    event_take(event_post(1, "bob", "x"));
    deliver_turn_end(deliver);
    expect_ids(&b, "1");
    assert_true(fake_client_lives(&b));
}

/* --- failing allocations ---------------------------------------------------------------------- */

static void test_without_memory_there_is_no_deliver(void **state)
{
    struct deliver_settings settings = settings_of(0, 4096);
    struct deliver *made = NULL;

    (void)state;
    for (uint64_t n = 0; !made; n++) {
        mem_fail_after(n);
        made = deliver_new(&settings);
        mem_fail_never();
    }
    deliver_free(made);
    deliver_free(NULL);
}

static void test_without_memory_a_subscription_changes_nothing(void **state)
{
    struct sl_filter *filter = filter_of("tea", NULL);
    struct rule_set *rules;
    int r;

    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        r = -ENOMEM;
        for (uint64_t n = 0; r < 0; n++) {
            mem_fail_after(n);
            r = kind == 0   ? deliver_subscribe(deliver, &a.client, filter, 0)
                : kind == 1 ? subscribe_home(&a, "bob")
                            : deliver_subscribe_rules(deliver, &a.client, 0, &rules);
            mem_fail_never();
            assert_int_equal(r, r < 0 ? -ENOMEM : 0);
            assert_int_equal(a.client.outbox == NULL, r < 0);
            if (r < 0)
                post_alone(n + 1, "tea");
        }
        deliver_leave(&a.client);
    }
    expect_ids(&a, "");
    sl_filter_unref(filter);
}

/* Whichever allocation for an event fails: a client gets the event, or is told where to resume. */
static void test_without_memory_for_an_event_nobody_misses_it_in_silence(void **state)
{
    struct sl_slice ada = SL_SLICE("ada");
    bool all_live = false;

    (void)state;
    for (uint64_t n = 0; !all_live; n++) {
        struct event *event = event_post(20 + n, "ada", "tea");
        struct fake_client *const clients[] = {&a, &b, &c};

        begin_again(0, 1 << 20);
        post(10, "coffee");
        subscribe(&a, "tea");
        put(subscribe_rules(&b), "one", NULL, "tea");
        assert_int_equal(subscribe_home(&c, "bob"), 0);
        answer_load(&ada, 1);
        mem_fail_after(n);
        event_take(event);
        mem_fail_never();
        deliver_turn_end(deliver);
        all_live = true;
        for (size_t i = 0; i < 3; i++) {
            all_live = all_live && fake_client_lives(clients[i]);
            assert_int_equal(clients[i]->received.size > 0, fake_client_lives(clients[i]));
            if (!fake_client_lives(clients[i])) {
                assert_int_equal(clients[i]->disconnect_reason, DISCONNECT_INTERNAL);
                assert_int_equal(clients[i]->disconnect_cursor.id, 10);
            }
        }
    }
}

/* --- gaps ----------------------------------------------------------------------------------------
 */

static const struct gap some_gap = {.from = 11, .to = 15, .reason = GAP_REWOUND};
static const char some_gap_json[] =
    "{\"type\":\"gap\",\"from\":\"11\",\"to\":\"15\",\"reason\":\"rewound\"}";

static void test_a_gap_is_told_to_everyone_between_their_events(void **state)
{
    struct sl_slice ada = SL_SLICE("ada");
    struct fake_client *const clients[] = {&a, &b, &c};
    char expected[256];

    (void)state;
    subscribe(&a, "tea");
    subscribe_rules(&b);
    assert_int_equal(subscribe_home(&c, "bob"), 0);
    answer_load(&ada, 1);
    deliver_gap(deliver, &some_gap);
    assert_int_equal(head().id, 0); /* a gap is not a cursor */
    deliver_flush_all(deliver);
    for (size_t i = 0; i < 3; i++) {
        assert_non_null(memmem(clients[i]->received.data, clients[i]->received.size, some_gap_json,
                               strlen(some_gap_json)));
        assert_int_equal(clients[i]->client.sent_events, 1);
    }
    assert_int_equal(metric_get(metrics, METRIC_GAPS_TOLD_REWOUND), 1);

    buffer_clear(&a.received);
    deliver_gap(deliver, &some_gap);
    post(20, "tea");
    deliver_flush_all(deliver);
    snprintf(expected, sizeof(expected), "%zx\r\n%s\r\n\r\n", strlen(some_gap_json) + 2,
             some_gap_json);
    assert_memory_equal(a.received.data, expected, strlen(expected));
    assert_true(a.received.size > strlen(expected));
}

static void test_behind_a_gap_home_streams_go_by_sets_read_anew(void **state)
{
    struct sl_slice ada = SL_SLICE("ada"), cyd = SL_SLICE("cyd");
    uint64_t first_load;

    (void)state;
    assert_int_equal(subscribe_home(&a, "bob"), 0);
    answer_load(&ada, 1);
    event_take(event_post(10, "ada", "x"));
    deliver_turn_end(deliver);
    expect_ids(&a, "10");
    first_load = last_load;
    deliver_gap(deliver, &some_gap);
    assert_true(last_load > first_load);
    event_take(event_post(20, "ada", "x"));
    event_take(event_post(21, "cyd", "x"));
    deliver_flush_all(deliver);
    assert_false(outbox_client_is_served(&a.client));
    assert_int_equal(outbox_client_cursor(&a.client, CURSOR(head().id)).id, 10);
    buffer_clear(&a.received); /* the gap */
    answer_load(&cyd, 1);
    deliver_flush_all(deliver);
    expect_ids(&a, "21");
    assert_true(outbox_client_is_served(&a.client));
}

/* Loading starts again for every client that lacks something from before the gap. */
static void test_a_failed_load_behind_a_gap_forgets_nothing_from_before(void **state)
{
    struct sl_slice ada = SL_SLICE("ada");

    (void)state;
    assert_int_equal(subscribe_home(&a, "bob"), 0);
    answer_load(&ada, 1);
    event_take(event_post(5, "eve", "x"));
    event_take(event_post(10, "ada", "x")); /* not sent yet */
    deliver_gap(deliver, &some_gap);
    event_take(event_post(20, "ada", "x"));
    home_load_failed(deliver_home(deliver), "bob", last_load);
    assert_int_equal(a.evictions, 1);
    assert_int_equal(a.disconnect_cursor.id, 5);
}

static void test_a_gap_moves_no_cursor_of_server_sent_events(void **state)
{
    char expected[256], payload[128];
    int size;

    (void)state;
    fake_client_done(&a);
    fake_client_init(&a, FORMAT_SSE, head);
    subscribe(&a, "tea");
    deliver_gap(deliver, &some_gap);
    deliver_flush_all(deliver);
    size = snprintf(payload, sizeof(payload), "event: gap\ndata: %s\n\n", some_gap_json);
    snprintf(expected, sizeof(expected), "%x\r\n%s\r\n", (unsigned)size, payload);
    fake_client_expect(&a, expected);
}

/* Whichever shard was quiet. */
static void test_cursor_of_who_has_seen_nothing_is_where_the_logs_end(void **state)
{
    const uint64_t newest = 5 * SL_ID_PER_MS + 3 * 64;

    (void)state;
    deliver_begin_shard(deliver, 0, 0);
    deliver_begin_shard(deliver, 3, newest);
    deliver_set_watermark(deliver, newest - 1);
    assert_int_equal(head().id, 0);
    deliver_set_watermark(deliver, newest);
    assert_int_equal(head().id, newest);
}

static void test_who_cannot_be_told_of_a_gap_has_to_go(void **state)
{
    bool is_told = false;

    (void)state;
    for (uint64_t n = 0; !is_told; n++) {
        begin_again(0, 1 << 20);
        post(10, "coffee");
        subscribe(&a, "tea");
        mem_fail_after(n);
        deliver_gap(deliver, &some_gap);
        mem_fail_never();
        deliver_turn_end(deliver);
        is_told = fake_client_lives(&a);
        assert_int_equal(a.received.size > 0, is_told);
        if (!is_told)
            assert_int_equal(a.disconnect_cursor.id, 10);
    }
}

/* --- random operations ------------------------------------------------------------------------ */

enum { CLIENTS = 24, EVENTS = 300 };

static const char *const words[] = {"tea", "coffee", "milk", "water", "wine"};

struct model_client {
    struct fake_client fake;
    struct sl_filter *filter;
    struct buffer expected;
};

static uint64_t random_state;

static size_t below(size_t n)
{
    return stable_hash(random_state++) % n;
}

static void model_join(struct model_client *client)
{
    char track[64];

    fake_client_init(&client->fake, (enum stream_format)below(FORMAT_COUNT), head);
    client->fake.room = below(2) ? FAKE_UNLIMITED : below(500);
    client->expected = BUFFER_INIT;
    snprintf(track, sizeof(track), "%s%s%s", words[below(5)], below(2) ? " " : ",",
             words[below(5)]);
    client->filter = filter_of(track, below(3) ? NULL : "delete,follow");
    assert_int_equal(deliver_subscribe(deliver, &client->fake.client, client->filter,
                                       below(2) ? -1 : (int)below(4)),
                     0);
}

/* The received events are the first ones of those expected. */
static void model_check(struct model_client *client)
{
    struct buffer *received = &client->fake.received;

    assert_true(fake_client_lives(&client->fake));
    assert_true(received->size <= client->expected.size);
    assert_memory_equal(buffer_slice(received).data, buffer_slice(&client->expected).data,
                        received->size);
    buffer_consume(&client->expected, received->size);
    buffer_clear(received);
}

static void model_leave(struct model_client *client)
{
    model_check(client);
    leave(&client->fake);
    sl_filter_unref(client->filter);
    buffer_done(&client->expected);
}

static struct event *model_event(uint64_t id)
{
    char json[256], text[64];
    size_t kind = below(6);

    snprintf(text, sizeof(text), "%s %s #%s", words[below(5)], words[below(5)], words[below(5)]);
    if (kind == 0)
        return event_graph(id, "follow", "ada", "bob");
    if (kind > 1)
        return event_post(id, "ada", text);
    snprintf(json, sizeof(json),
             "{\"id\":\"%" PRIu64 "\",\"type\":\"delete\",\"post\":{\"id\":\"1\","
             "\"user\":{\"id\":\"ada\"},\"text\":\"%s\"}}",
             id, text);
    return event_of(id, json);
}

static void model_publish(struct model_client *clients, struct sl_words *read, uint64_t id)
{
    struct event *event = model_event(id);

    assert_int_equal(sl_words_read(read, &event->view), 0);
    for (size_t i = 0; i < CLIENTS; i++) {
        if (sl_filter_matches(clients[i].filter, &event->view, read))
            buffer_append_slice(&clients[i].expected,
                                frame_of_event(event, clients[i].fake.client.format));
    }
    event_take(event);
}

static void test_every_client_gets_exactly_what_its_filter_says(void **state)
{
    static struct model_client clients[CLIENTS];
    struct sl_words *read = sl_words_new(1);

    (void)state;
    for (random_state = 0; random_state < (uint64_t)30 << 32;
         random_state = ((random_state >> 32) + 1) << 32) {
        for (size_t i = 0; i < CLIENTS; i++)
            model_join(&clients[i]);
        for (uint64_t id = 1; id <= EVENTS; id++) {
            struct model_client *client = &clients[below(CLIENTS)];

            model_publish(clients, read, id);
            if (below(3) == 0)
                deliver_turn_end(deliver);
            if (below(20) == 0)
                uv_run(&test_loop.uv, UV_RUN_NOWAIT);
            make_room(&client->fake, below(3000));
            if (below(20) == 0) {
                client = &clients[below(CLIENTS)];
                model_leave(client);
                model_join(client);
            }
        }
        deliver_flush_all(deliver);
        for (size_t i = 0; i < CLIENTS; i++) {
            make_room(&clients[i].fake, FAKE_UNLIMITED);
            model_check(&clients[i]);
            assert_int_equal(clients[i].expected.size, 0);
        }
        deliver_turn_end(deliver);
        assert_int_equal(metric_get(metrics, METRIC_EVENT_BYTES), 0);
        for (size_t i = 0; i < CLIENTS; i++)
            model_leave(&clients[i]);
    }
    sl_words_free(read);
}

#define DELIVER_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DELIVER_TEST(test_many_large_rules_are_forgotten_one_in_a_turn),
        DELIVER_TEST(test_rules_that_are_not_yet_forgotten_get_nothing),
        DELIVER_TEST(test_small_rules_are_forgotten_many_in_a_turn),
        DELIVER_TEST(test_only_those_who_are_owed_something_are_visited),
        DELIVER_TEST(test_who_is_behind_is_visited_until_it_has_everything),
        DELIVER_TEST(test_events_go_to_those_whose_filter_matches),
        DELIVER_TEST(test_equal_filters_cost_one_append),
        DELIVER_TEST(test_clients_framed_or_gathered_otherwise_share_nothing),
        DELIVER_TEST(test_clients_whose_messages_end_alike_share_a_lane),
        DELIVER_TEST(test_a_lane_goes_with_its_last_client),
        DELIVER_TEST(test_the_cursor_is_the_newest_id_seen),
        DELIVER_TEST(test_a_quiet_client_gets_an_event_at_once_and_later_ones_together),
        DELIVER_TEST(test_the_first_event_waits_for_nobody),
        DELIVER_TEST(test_what_was_gathered_opens_a_window_too),
        DELIVER_TEST(test_a_client_is_quiet_again_when_a_window_has_passed),
        DELIVER_TEST(test_without_gathering_every_turn_is_sent),
        DELIVER_TEST(test_shorter_windows_end_first),
        DELIVER_TEST(test_a_client_that_joins_in_a_window_gets_later_events_only),
        DELIVER_TEST(test_a_lane_may_go_while_it_gathers),
        DELIVER_TEST(test_what_is_gathered_can_be_sent_at_once),
        DELIVER_TEST(test_a_window_ends_early_when_much_is_gathered),
        DELIVER_TEST(test_a_client_owed_too_much_goes_on_by_itself_and_others_do_not_notice),
        DELIVER_TEST(test_a_slow_client_catches_up_when_its_socket_has_room),
        DELIVER_TEST(test_all_queues_are_dropped_when_together_they_keep_too_much),
        DELIVER_TEST(test_an_event_names_the_rules_it_matched_in_their_order),
        DELIVER_TEST(test_names_and_tags_are_escaped),
        DELIVER_TEST(test_a_rule_that_is_put_again_is_replaced_and_comes_last),
        DELIVER_TEST(test_rules_can_be_listed_and_removed),
        DELIVER_TEST(test_rules_of_several_clients_keep_apart),
        DELIVER_TEST(test_without_memory_a_rule_is_not_put_and_the_old_one_stays),
        DELIVER_TEST(test_a_home_stream_begins_with_what_passed_while_its_set_was_read),
        DELIVER_TEST(test_home_lanes_are_shared_by_user_and_types),
        DELIVER_TEST(test_clients_of_a_feed_that_fails_are_told_a_cursor_before_what_they_missed),
        DELIVER_TEST(test_who_comes_after_a_feed_failed_gets_a_new_one),
        DELIVER_TEST(test_without_memory_there_is_no_deliver),
        DELIVER_TEST(test_without_memory_a_subscription_changes_nothing),
        DELIVER_TEST(test_without_memory_for_an_event_nobody_misses_it_in_silence),
        DELIVER_TEST(test_a_gap_is_told_to_everyone_between_their_events),
        DELIVER_TEST(test_behind_a_gap_home_streams_go_by_sets_read_anew),
        DELIVER_TEST(test_a_failed_load_behind_a_gap_forgets_nothing_from_before),
        DELIVER_TEST(test_a_gap_moves_no_cursor_of_server_sent_events),
        DELIVER_TEST(test_cursor_of_who_has_seen_nothing_is_where_the_logs_end),
        DELIVER_TEST(test_who_cannot_be_told_of_a_gap_has_to_go),
        DELIVER_TEST(test_every_client_gets_exactly_what_its_filter_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
