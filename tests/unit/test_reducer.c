#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "filters/filter.h"
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/deliver_parts.h"
#include "gateway/delivery/frame.h"
#include "gateway/delivery/reducer.h"
#include "gateway/delivery/rule_set.h"
#include "gateway/front/event_fields.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/events.h"
#include "tests/support/fake_client.h"
#include "tests/support/test_loop.h"

static struct reducer reducer;

static int end_reducer(void **state)
{
    (void)state;
    reducer_done(&reducer);
    return 0;
}

static uint64_t fields_of(const char *names)
{
    uint64_t fields = 0;

    assert_int_equal(event_fields_parse(sl_slice_str(names), &fields, NULL), 0);
    return fields;
}

static void expect_json(const struct event *event, const char *json)
{
    assert_int_equal(event->json.size, strlen(json));
    assert_memory_equal(event->json.data, json, event->json.size);
}

static struct event *reduce(struct event *event, const char *names)
{
    struct event *reduction = reducer_reduce(&reducer, event, fields_of(names));

    assert_non_null(reduction);
    return reduction;
}

/* A client that falls behind is owed it elsewhere, too. */
static void test_a_reduction_stays_as_it_is(void **state)
{
    struct event *event = event_post(7, "ada", "tea");
    struct event *text = reduce(event, "text"), *again = reduce(text, "text");

    (void)state;
    assert_ptr_equal(text, again);
    assert_int_equal(reducer.made, 1);
    event_unref(text);
    event_unref(again);
    event_unref(event);
}

static void test_a_reduction_is_made_once_for_each_set(void **state)
{
    struct event *event = event_post(7, "ada", "tea");
    struct event *text = reduce(event, "text"), *again = reduce(event, "text,id"),
                 *ids = reduce(event, "ids");

    (void)state;
    assert_ptr_equal(text, again);
    assert_ptr_not_equal(text, ids);
    assert_int_equal(reducer.made, 2);
    expect_json(text, "{\"id\":\"7\",\"type\":\"post\",\"post\":{\"text\":\"tea\"}}");
    expect_json(ids, "{\"id\":\"7\",\"type\":\"post\",\"post\":{\"user\":{\"id\":\"ada\"}}}");
    event_unref(text);
    event_unref(again);
    event_unref(ids);
    text = reduce(event, "text"); /* it was stored */
    assert_int_equal(reducer.made, 2);
    event_unref(event);
    expect_json(text, "{\"id\":\"7\",\"type\":\"post\",\"post\":{\"text\":\"tea\"}}");
    event_unref(text);
}

/* In any order. */
static void test_an_event_and_its_reductions_are_freed_in_any_order(void **state)
{
    static const char orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        struct event *event = event_post(7, "ada", "tea");
        struct event *events[] = {event, event_new_reduction(event, 3, SL_SLICE("{}")),
                                  event_new_reduction(event, 5, SL_SLICE("{}"))};

        assert_ptr_equal(event_find_reduction(event, 3), events[1]);
        assert_ptr_equal(event_find_reduction(event, 5), events[2]);
        for (size_t k = 0; k < 3; k++) {
            event_unref(events[(size_t)orders[i][k]]);
            if (k == 0 && orders[i][0] == 1)
                assert_null(event_find_reduction(event, 3));
        }
    }
}

static void test_a_reduction_stands_where_its_event_does(void **state)
{
    const struct sl_cursor cursor = {
        .id = 9, .group_count = 1, .groups = {{.low = 5, .shards = 2}}};
    struct event *event = event_post(7, "ada", "tea"), *late, *text;
    struct sl_slice frame;

    (void)state;
    event->sequence = 44;
    event->received_us = 55;
    late = event_copy_with_cursor(event, &cursor, true);
    assert_non_null(late);
    text = reduce(late, "text");
    assert_int_equal(text->sequence, 44);
    assert_int_equal(text->received_us, 55);
    assert_true(text->is_late);
    expect_json(text, "{\"id\":\"7\",\"type\":\"post\",\"post\":{\"text\":\"tea\"},\"late\":true,"
                      "\"cursor\":\"9~5:2\"}");
    frame = frame_of_event(text, FORMAT_SSE);
    assert_non_null(memmem(frame.data, frame.size, "id: 9~5:2\nevent: post\n", 22));
    assert_null(event_find_reduction(event, fields_of("text")));
    event_unref(event);
    event_unref(late);
    event_unref(text);
}

static void test_messages_of_ours_are_not_reduced(void **state)
{
    struct event *warning = event_new_control(EVENT_WARNING, SL_SLICE("{\"type\":\"warning\"}"));
    struct event *same = reduce(warning, "text");

    (void)state;
    assert_ptr_equal(same, warning);
    event_unref(same);
    event_unref(warning);
}

static void test_what_is_kept_is_bounded(void **state)
{
    static char text[1 << 16];

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    for (uint64_t id = 1; id <= 400; id++) {
        struct event *event = event_post(id, "ada", text), *reduction = reduce(event, "text");

        frame_of_event(reduction, FORMAT_NDJSON);
        event_unref(reduction);
        event_unref(event);
        assert_true(reducer.bytes <= REDUCER_KEPT_BYTES + 3 * sizeof(text));
    }
    assert_true(reducer.kept_count > 30);
    for (uint64_t id = 1; id <= 2 * REDUCER_KEPT_MAX; id++) {
        struct event *event = event_post(id, "ada", "x");

        event_unref(reduce(event, "text"));
        event_unref(event);
        assert_true(reducer.kept_count <= REDUCER_KEPT_MAX);
    }
    assert_int_equal(reducer.kept_count, REDUCER_KEPT_MAX);
}

static void test_what_is_owed_takes_the_room_of_what_is_kept(void **state)
{
    enum { LARGE = 9 };
    static char text[REDUCER_KEPT_BYTES / 8 - 1000];
    struct event *events[LARGE], *large[LARGE], *small;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    for (size_t i = 0; i < LARGE; i++) {
        events[i] = event_post(i + 1, "ada", text);
        large[i] = reduce(events[i], "text");
    }
    assert_int_equal(reducer.kept_count, 0);
    small = reduce(events[0], "ids");
    assert_int_equal(reducer.kept_count, 0);
    event_unref(small);
    assert_null(event_find_reduction(events[0], fields_of("ids")));
    assert_ptr_equal(event_find_reduction(events[0], fields_of("text")), large[0]);
    for (size_t i = 0; i < LARGE; i++) {
        event_unref(large[i]);
        event_unref(events[i]);
    }
    assert_int_equal(reducer.bytes, 0);
}

static void test_many_sets_are_made_for_each_who_asks(void **state)
{
    struct event *event = event_post(7, "ada", "tea"), *found, *made, *again;

    (void)state;
    for (int field = FIELD_AT; field < FIELD_AT + EVENT_REDUCTIONS_MAX; field++)
        event_unref(reducer_reduce(&reducer, event, 3 | event_field_bit((enum event_field)field)));
    made = reduce(event, "geo,text");
    again = reduce(event, "geo,text");
    found = reduce(event, "at");
    assert_ptr_not_equal(made, again);
    assert_true(sl_slice_equal(made->json, again->json));
    assert_int_equal(reducer.made, EVENT_REDUCTIONS_MAX + 2);
    event_unref(event);
    event_unref(found);
    event_unref(made);
    event_unref(again);
}

static void test_without_memory_there_is_no_reduction(void **state)
{
    const struct sl_cursor cursor = {.id = 9};
    struct event *event = event_post(7, "ada", "tea"), *copy, *reduction = NULL;

    (void)state;
    copy = event_copy_with_cursor(event, &cursor, false);
    assert_non_null(copy);
    for (unsigned n = 0; !reduction; n++) {
        struct reducer fresh = {0};

        mem_fail_after(n);
        reduction = reducer_reduce(&fresh, copy, EVENT_FIELDS_SHORT);
        mem_fail_never();
        assert_true(n < 100);
        assert_ptr_equal(event_find_reduction(copy, EVENT_FIELDS_SHORT), reduction);
        event_unref(reduction);
        reducer_done(&fresh);
    }
    event_unref(copy);
    event_unref(event);
}

/* --- lanes ------------------------------------------------------------------------------------ */

static struct test_loop test_loop;
static struct metrics_board *board;
static struct metrics *metrics;
static struct deliver *deliver;
static struct fake_client a, b, c;

static struct sl_cursor head(void)
{
    return deliver_cursor(deliver);
}

static int begin(void **state)
{
    struct deliver_settings settings;

    (void)state;
    test_loop_init(&test_loop, NULL);
    board = metrics_board_new(1);
    metrics = metrics_slot(board, 0);
    settings = (struct deliver_settings){.loop = &test_loop.uv,
                                         .metrics = metrics,
                                         .max_owed_bytes = 1 << 20,
                                         .max_event_bytes = 1 << 30,
                                         .max_home_bytes = 1 << 30,
                                         .ring_bytes = 1 << 20};
    deliver = deliver_new(&settings);
    fake_client_init(&a, FORMAT_WEBSOCKET, head);
    fake_client_init(&b, FORMAT_WEBSOCKET, head);
    fake_client_init(&c, FORMAT_WEBSOCKET, head);
    return deliver ? 0 : -1;
}

static int end(void **state)
{
    struct fake_client *clients[] = {&a, &b, &c};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        deliver_leave(&clients[i]->client);
        fake_client_done(clients[i]);
    }
    deliver_turn_end(deliver);
    deliver_free(deliver);
    test_loop_done(&test_loop);
    metrics_board_free(board);
    return 0;
}

static struct sl_filter *firehose(void)
{
    struct sl_filter_text text = {.firehose = true};
    struct sl_filter_error error;
    struct sl_filter *filter;

    assert_int_equal(sl_filter_new(&text, &SL_FILTER_LIMITS_DEFAULT, &filter, &error), 0);
    return filter;
}

static void subscribe(struct fake_client *client, const char *names)
{
    struct sl_filter *filter = firehose();

    client->client.fields = fields_of(names);
    assert_int_equal(deliver_subscribe(deliver, &client->client, filter, 0), 0);
    sl_filter_unref(filter);
}

static void post(uint64_t id, const char *text)
{
    struct event *event = event_post(id, "ada", text);

    deliver_event(deliver, event);
    event_unref(event);
    deliver_turn_end(deliver);
}

static void expect_message(struct fake_client *client, const char *json)
{
    struct buffer frame = BUFFER_INIT;

    frame_append_message(&frame, FORMAT_WEBSOCKET, "", sl_slice_str(json));
    assert_int_equal(client->received.size, frame.size);
    assert_memory_equal(client->received.data, frame.data, frame.size);
    buffer_clear(&client->received);
    buffer_done(&frame);
}

static void test_lanes_of_a_set_share_what_is_made(void **state)
{
    (void)state;
    b.client.format = FORMAT_NDJSON;
    subscribe(&a, "text,user.login");
    subscribe(&b, "user.login,text");
    subscribe(&c, "text,user.login");
    assert_ptr_not_equal(a.client.outbox, b.client.outbox);
    assert_ptr_equal(a.client.outbox, c.client.outbox);
    post(7, "tea");
    expect_message(&a, "{\"id\":\"7\",\"type\":\"post\",\"post\":{\"text\":\"tea\"}}");
    expect_message(&c, "{\"id\":\"7\",\"type\":\"post\",\"post\":{\"text\":\"tea\"}}");
    assert_non_null(memmem(b.received.data, b.received.size, "{\"text\":\"tea\"}}", 15));
    assert_int_equal(metric_get(metrics, METRIC_REDUCTIONS), 1);
}

static void test_other_members_are_another_lane(void **state)
{
    struct event *event = event_post(7, "ada", "tea");

    (void)state;
    subscribe(&a, "text");
    subscribe(&b, "ids");
    subscribe(&c, "full");
    post(7, "tea");
    expect_message(&a, "{\"id\":\"7\",\"type\":\"post\",\"post\":{\"text\":\"tea\"}}");
    expect_message(&b, "{\"id\":\"7\",\"type\":\"post\",\"post\":{\"user\":{\"id\":\"ada\"}}}");
    assert_int_equal(event->json.data[event->json.size - 1], '}');
    assert_non_null(memmem(c.received.data, c.received.size, event->json.data, event->json.size));
    event_unref(event);
}

static void test_nothing_is_made_for_those_who_want_all(void **state)
{
    (void)state;
    subscribe(&a, "full");
    post(7, "tea");
    assert_int_equal(metric_get(metrics, METRIC_REDUCTIONS), 0);
    assert_null(deliver->reducer.kept);
}

static void test_who_catches_up_gets_the_same_members(void **state)
{
    (void)state;
    deliver_begin_shard(deliver, 0, 1);
    subscribe(&c, "text"); /* existed already */
    post(7, "tea");
    post(8, "milk");
    subscribe(&a, "text");
    assert_int_equal(deliver_resume(deliver, &a.client, CURSOR(1)), 0);
    RUN_UNTIL(&test_loop, a.client.sent_events == 2);
    assert_int_equal(a.received.size, c.received.size);
    assert_memory_equal(a.received.data, c.received.data, a.received.size);
    assert_int_equal(metric_get(metrics, METRIC_REDUCTIONS), 2);
}

static void test_small_events_count_with_their_memory(void **state)
{
    uint64_t id = 1;

    (void)state;
    deliver_set_limits(deliver, 100 * sizeof(struct event), 1 << 30, 1 << 30, 0);
    subscribe(&a, "ids");
    subscribe(&b, "full");
    a.room = b.room = 0;
    while (!a.client.catcher && id < 1000)
        post(id++, "");
    assert_in_range(id, 80, 110);
    assert_null(b.client.catcher);
    a.room = b.room = FAKE_UNLIMITED;
}

static void test_reduced_events_count_among_those_that_all_are_owed(void **state)
{
    uint64_t id = 1;

    (void)state;
    deliver_set_limits(deliver, 1 << 30, 1 << 20, 1 << 30, 0);
    subscribe(&a, "ids");
    a.room = 0;
    while (!a.client.catcher && id < 50000)
        post(id++, "");
    assert_non_null(a.client.catcher);
    assert_true(deliver->reducer.bytes <= REDUCER_KEPT_BYTES + (2 << 20));
    assert_int_equal(metric_get(metrics, METRIC_EVENT_BYTES_EXCEEDED), 1);
    a.room = FAKE_UNLIMITED;
}

static void test_without_memory_nobody_misses_it_in_silence(void **state)
{
    bool all_live = false;

    for (uint64_t n = 0; !all_live; n++) {
        struct event *event = event_post(20, "ada", "tea");
        struct fake_client *const clients[] = {&a, &b};

        end(state);
        assert_int_equal(begin(state), 0);
        b.client.format = FORMAT_SSE;
        subscribe(&a, "text");
        subscribe(&b, "short");
        post(10, "milk");
        buffer_clear(&a.received);
        buffer_clear(&b.received);
        mem_fail_after(n);
        deliver_event(deliver, event);
        mem_fail_never();
        event_unref(event);
        deliver_turn_end(deliver);
        all_live = true;
        for (size_t i = 0; i < 2; i++) {
            bool lives = fake_client_lives(clients[i]);

            all_live = all_live && lives;
            assert_int_equal(clients[i]->received.size > 0, lives);
            assert_true(lives || clients[i]->disconnect_cursor.id == 10);
        }
        assert_true(n < 1000);
    }
}

static void test_named_rules_may_change_the_members(void **state)
{
    struct sl_filter *filter = firehose();
    struct rule_set *rules;

    (void)state;
    a.client.fields = fields_of("text");
    assert_int_equal(deliver_subscribe_rules(deliver, &a.client, 0, &rules), 0);
    assert_int_equal(rule_set_put(rules, SL_SLICE("r"), SL_SLICE_NONE, filter), 0);
    sl_filter_unref(filter);
    post(7, "tea");
    expect_message(&a, "{\"id\":\"7\",\"type\":\"post\",\"post\":{\"text\":\"tea\"},"
                       "\"matching_rules\":[{\"id\":\"r\"}]}");
    deliver_set_fields(&a.client, fields_of("ids"));
    post(8, "tea");
    expect_message(&a, "{\"id\":\"8\",\"type\":\"post\",\"post\":{\"user\":{\"id\":\"ada\"}},"
                       "\"matching_rules\":[{\"id\":\"r\"}]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_reduction_stays_as_it_is, end_reducer),
        cmocka_unit_test_teardown(test_a_reduction_is_made_once_for_each_set, end_reducer),
        cmocka_unit_test(test_an_event_and_its_reductions_are_freed_in_any_order),
        cmocka_unit_test_teardown(test_a_reduction_stands_where_its_event_does, end_reducer),
        cmocka_unit_test_teardown(test_messages_of_ours_are_not_reduced, end_reducer),
        cmocka_unit_test_teardown(test_what_is_kept_is_bounded, end_reducer),
        cmocka_unit_test_teardown(test_what_is_owed_takes_the_room_of_what_is_kept, end_reducer),
        cmocka_unit_test_teardown(test_many_sets_are_made_for_each_who_asks, end_reducer),
        cmocka_unit_test(test_without_memory_there_is_no_reduction),
        cmocka_unit_test_setup_teardown(test_lanes_of_a_set_share_what_is_made, begin, end),
        cmocka_unit_test_setup_teardown(test_other_members_are_another_lane, begin, end),
        cmocka_unit_test_setup_teardown(test_nothing_is_made_for_those_who_want_all, begin, end),
        cmocka_unit_test_setup_teardown(test_who_catches_up_gets_the_same_members, begin, end),
        cmocka_unit_test_setup_teardown(test_small_events_count_with_their_memory, begin, end),
        cmocka_unit_test_setup_teardown(test_reduced_events_count_among_those_that_all_are_owed,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_without_memory_nobody_misses_it_in_silence, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_named_rules_may_change_the_members, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
