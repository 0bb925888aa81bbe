#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/stable_hash.h"
#include "gateway/delivery/frame.h"
#include "gateway/delivery/outbox.h"
#include "gateway/metrics/metrics.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/events.h"
#include "tests/support/fake_client.h"

/* --- an outbox, and events that are easy to read
 * ----------------------------------------------- */

static struct outbox outbox;
static struct outbox_counts counts;
static struct fake_client a, b, c;
static uint64_t newest_id;

static struct sl_cursor head(void)
{
    return (struct sl_cursor){.id = newest_id};
}

static void overrun(struct client *client)
{
    client->transport->evict(client, DISCONNECT_TOO_SLOW);
}

static void begin_with(const struct outbox_settings *settings)
{
    struct fake_client *const clients[] = {&a, &b, &c};

    counts = (struct outbox_counts){0};
    newest_id = 0;
    outbox_init(&outbox, settings, &counts);
    outbox.settings.overrun = overrun;
    for (size_t i = 0; i < 3; i++)
        fake_client_init(clients[i], settings->format, head);
}

static int begin(void **state)
{
    (void)state;
    begin_with(&(struct outbox_settings){.format = FORMAT_NDJSON, .max_owed_bytes = 1 << 20});
    return 0;
}

static int end(void **state)
{
    struct fake_client *const clients[] = {&a, &b, &c};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        outbox_leave(&clients[i]->client);
        fake_client_done(clients[i]);
    }
    outbox_done(&outbox);
    return 0;
}

static struct event *event_json(uint64_t id, const char *json)
{
    struct event *event = mem_zalloc(sizeof(*event) + strlen(json));

    assert_non_null(event);
    memcpy(event + 1, json, strlen(json));
    event->refs = 1;
    event->id = id;
    event->json = sl_slice((char *)(event + 1), strlen(json));
    event->bytes = sizeof(*event) + strlen(json);
    return event;
}

/* Appends {"n":ID}, as a chunk "9\r\n{"n":ID}\r\n\r\n" for ids of one digit, and drops its
 * reference. */
static void append(uint64_t id)
{
    struct event *event;
    char json[32];

    snprintf(json, sizeof(json), "{\"n\":%" PRIu64 "}", id);
    event = event_json(id, json);
    assert_int_equal(outbox_append(&outbox, event, CURSOR(newest_id), SL_SLICE_NONE, 1), 0);
    event_unref(event);
    newest_id = id;
}

#define CHUNK(id) "9\r\n{\"n\":" #id "}\r\n\r\n"

enum { CHUNK_SIZE = sizeof(CHUNK(1)) - 1 };

static void make_room(struct fake_client *client, size_t bytes)
{
    if (fake_client_make_room(client, bytes))
        outbox_client_writable(&client->client, 1);
}

static void test_one_flush_sends_all_that_is_new_to_everyone_in_one_call_each(void **state)
{
    (void)state;
    outbox_join(&outbox, &a.client);
    outbox_join(&outbox, &b.client);
    append(1);
    append(2);
    fake_client_expect(&a, "");
    outbox_flush(&outbox, 7);
    fake_client_expect(&a, CHUNK(1) CHUNK(2));
    fake_client_expect(&b, CHUNK(1) CHUNK(2));
    assert_int_equal(counts.sends, 2);
    assert_int_equal(counts.events, 4);
    assert_int_equal(counts.bytes, 4 * CHUNK_SIZE);
    assert_int_equal(a.client.sent_events, 2);
    assert_int_equal(a.client.sent_bytes, 2 * CHUNK_SIZE);
    assert_int_equal(a.client.last_sent_ms, 7);
    assert_int_equal(outbox.last_flush_ms, 7);
}

static void test_a_client_that_joins_while_events_are_gathered_gets_later_ones_only(void **state)
{
    (void)state;
    outbox_join(&outbox, &a.client);
    append(1);
    outbox_join(&outbox, &b.client);
    append(2);
    outbox_join(&outbox, &c.client);
    assert_false(outbox_client_is_served(&b.client));
    assert_true(outbox_client_is_served(&c.client));
    outbox_flush(&outbox, 1);
    fake_client_expect(&a, CHUNK(1) CHUNK(2));
    fake_client_expect(&b, CHUNK(2));
    fake_client_expect(&c, "");
    append(3);
    outbox_flush(&outbox, 1);
    fake_client_expect(&a, CHUNK(3));
    fake_client_expect(&b, CHUNK(3));
    fake_client_expect(&c, CHUNK(3));
}

static void test_a_frame_that_is_cut_is_finished_before_the_next_one(void **state)
{
    (void)state;
    outbox_join(&outbox, &a.client);
    a.room = CHUNK_SIZE + 5;
    append(1);
    append(2);
    append(3);
    outbox_flush(&outbox, 1);
    assert_int_equal(a.holds, 1);
    assert_int_equal(a.held.size, CHUNK_SIZE - 5);
    assert_int_equal(a.client.sent_events, 2);
    append(4);
    outbox_flush(&outbox, 1);
    assert_int_equal(a.sends, 1); /* blocked: not even tried */
    make_room(&a, FAKE_UNLIMITED);
    fake_client_expect(&a, CHUNK(1) CHUNK(2) CHUNK(3) CHUNK(4));
    assert_int_equal(a.client.sent_events, 4);
    assert_int_equal(counts.events, 4);
}

/* A transport that took some bytes need not report when there is room again: it must be tried once
 * more, or the client would wait forever. */
static void test_a_cut_between_two_frames_does_not_leave_the_client_waiting(void **state)
{
    (void)state;
    outbox_join(&outbox, &a.client);
    a.room = CHUNK_SIZE;
    append(1);
    append(2);
    append(3);
    outbox_flush(&outbox, 1);
    assert_true(a.awaits_writable);
    make_room(&a, FAKE_UNLIMITED);
    fake_client_expect(&a, CHUNK(1) CHUNK(2) CHUNK(3));
    append(4);
    outbox_flush(&outbox, 1);
    fake_client_expect(&a, CHUNK(4));
}

static void test_a_slow_client_goes_on_alone_and_keeps_step_again(void **state)
{
    (void)state;
    outbox_join(&outbox, &a.client);
    outbox_join(&outbox, &b.client);
    a.room = 0;
    append(1);
    outbox_flush(&outbox, 5);
    assert_int_equal(a.client.last_sent_ms, 0); /* nothing was sent: a keep-alive may be due */
    assert_int_equal(b.client.last_sent_ms, 5);
    append(2);
    outbox_flush(&outbox, 6);
    fake_client_expect(&a, "");
    fake_client_expect(&b, CHUNK(1) CHUNK(2));
    append(3); /* not flushed: the slow client must not overtake the gathering */
    make_room(&a, FAKE_UNLIMITED);
    fake_client_expect(&a, CHUNK(1) CHUNK(2));
    assert_int_equal(a.sends, 2);
    outbox_flush(&outbox, 1);
    fake_client_expect(&a, CHUNK(3));
    fake_client_expect(&b, CHUNK(3));
}

static void test_what_is_new_goes_out_in_several_calls_when_it_is_very_much(void **state)
{
    struct buffer expected = BUFFER_INIT;

    (void)state;
    outbox_join(&outbox, &a.client);
    for (uint64_t id = 1; id <= 1000; id++) {
        append(id);
        buffer_append_format(&expected, "%x\r\n{\"n\":%" PRIu64 "}\r\n\r\n",
                             id < 10     ? 9u
                             : id < 100  ? 10u
                             : id < 1000 ? 11u
                                         : 12u,
                             id);
    }
    outbox_flush(&outbox, 1);
    fake_client_expect(&a, buffer_str(&expected));
    assert_int_equal(a.sends, 4);         /* at least 253 pieces, and no more than 256 */
    assert_int_equal(outbox.capacity, 0); /* the ring that grew for a burst is freed */
    buffer_done(&expected);
}

static void test_http_1_0_clients_get_the_insides_of_the_chunks(void **state)
{
    (void)state;
    begin_with(&(struct outbox_settings){
        .format = FORMAT_NDJSON, .unchunked = true, .max_owed_bytes = 1 << 20});
    outbox_join(&outbox, &a.client);
    a.room = 3;
    append(1);
    append(2);
    outbox_flush(&outbox, 1);
    make_room(&a, FAKE_UNLIMITED);
    fake_client_expect(&a, "{\"n\":1}\r\n{\"n\":2}\r\n");
}

/* --- members before the last brace ------------------------------------------------------------ */

/* Cut at each place, the frame arrives whole. */
static void expect_tail(const struct outbox_settings *settings, const char *frame)
{
    struct event *event = event_json(1, "{\"n\":1}");

    for (size_t room = 0; room <= strlen(frame); room++) {
        begin_with(settings);
        outbox_join(&outbox, &a.client);
        a.room = room;
        assert_int_equal(outbox_append(&outbox, event, CURSOR(newest_id),
                                       SL_SLICE(",\"matching_rules\":[\"a\"]"), 1),
                         0);
        outbox_flush(&outbox, 1);
        assert_int_equal(a.received.size, room);
        make_room(&a, FAKE_UNLIMITED);
        fake_client_expect(&a, frame);
        end(NULL);
    }
    assert_int_equal(event->refs, 1);
    event_unref(event);
}

static void test_a_tail_goes_before_the_last_brace_wherever_the_frame_is_cut(void **state)
{
    struct outbox_settings settings = {.format = FORMAT_WEBSOCKET, .max_owed_bytes = 1 << 20};

    (void)state;
    expect_tail(&settings, "\x81\x1e{\"n\":1,\"matching_rules\":[\"a\"]}");
    settings.format = FORMAT_NDJSON;
    expect_tail(&settings, "20\r\n{\"n\":1,\"matching_rules\":[\"a\"]}\r\n\r\n");
    settings.unchunked = true;
    expect_tail(&settings, "{\"n\":1,\"matching_rules\":[\"a\"]}\r\n");
    begin(NULL);
}

static void test_an_empty_tail_changes_nothing(void **state)
{
    struct event *event = event_json(1, "{\"n\":1}");

    (void)state;
    begin_with(&(struct outbox_settings){.format = FORMAT_WEBSOCKET, .max_owed_bytes = 1 << 20});
    outbox_join(&outbox, &a.client);
    a.room = 8;
    assert_int_equal(outbox_append(&outbox, event, CURSOR(newest_id), SL_SLICE(""), 1), 0);
    outbox_flush(&outbox, 1);
    make_room(&a, FAKE_UNLIMITED);
    fake_client_expect(&a, "\x81\x07{\"n\":1}");
    event_unref(event);
}

/* --- releasing events ------------------------------------------------------------------------- */

static void test_an_event_is_let_go_of_when_the_last_client_has_passed_it(void **state)
{
    struct event *first = event_json(1, "{\"n\":1}"), *second = event_json(2, "{\"n\":2}");

    (void)state;
    outbox_join(&outbox, &a.client);
    outbox_join(&outbox, &b.client);
    a.room = 0;
    b.room = CHUNK_SIZE + 1;
    assert_int_equal(outbox_append(&outbox, first, CURSOR(newest_id), SL_SLICE_NONE, 1), 0);
    assert_int_equal(outbox_append(&outbox, second, CURSOR(newest_id), SL_SLICE_NONE, 1), 0);
    outbox_flush(&outbox, 1);
    assert_int_equal(first->refs, 2);
    make_room(&b, FAKE_UNLIMITED);
    assert_int_equal(first->refs, 2);
    make_room(&a, FAKE_UNLIMITED);
    assert_int_equal(first->refs, 1);
    assert_int_equal(second->refs, 1);
    event_unref(first);
    event_unref(second);
}

static void test_those_behind_keep_only_what_they_still_need(void **state)
{
    struct event *events[8];

    (void)state;
    outbox_join(&outbox, &a.client);
    a.room = 3 * CHUNK_SIZE + 1;
    for (int i = 0; i < 8; i++) {
        char json[32];

        snprintf(json, sizeof(json), "{\"n\":%d}", i);
        events[i] = event_json((uint64_t)i + 1, json);
        assert_int_equal(outbox_append(&outbox, events[i], CURSOR(newest_id), SL_SLICE_NONE, 1), 0);
    }
    outbox_flush(&outbox, 1);
    for (int i = 0; i < 8; i++)
        assert_int_equal(events[i]->refs, i < 4 ? 1 : 2);
    outbox_leave(&a.client);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(events[i]->refs, 1);
        event_unref(events[i]);
    }
}

/* --- slow, broken and evicted clients --------------------------------------------------------- */

static void test_a_client_that_is_owed_too_much_is_evicted_with_its_cursor(void **state)
{
    (void)state;
    begin_with(
        &(struct outbox_settings){.format = FORMAT_NDJSON, .max_owed_bytes = 3 * CHUNK_SIZE});
    outbox_join(&outbox, &a.client);
    outbox_join(&outbox, &b.client);
    append(1);
    a.room = CHUNK_SIZE + 1;
    append(2);
    outbox_flush(&outbox, 1);
    for (uint64_t id = 3; id <= 5; id++) {
        append(id);
        outbox_flush(&outbox, 1);
    }
    assert_int_equal(a.evictions, 0); /* exactly as much as it may be owed */
    append(6);
    outbox_flush(&outbox, 1);
    assert_int_equal(a.evictions, 1);
    assert_int_equal(a.disconnect_reason, DISCONNECT_TOO_SLOW);
    assert_int_equal(a.disconnect_cursor.id, 2); /* incomplete, but held: it will have been sent */
    assert_int_equal(outbox.first, outbox.next);
    fake_client_expect(&b, CHUNK(1) CHUNK(2) CHUNK(3) CHUNK(4) CHUNK(5) CHUNK(6));
    append(7);
    outbox_flush(&outbox, 1);
    assert_int_equal(a.evictions, 1);
    assert_int_equal(a.sends, 1);
    assert_true(outbox_has_clients(&outbox));
    outbox_leave(&a.client);
    outbox_leave(&b.client);
    assert_false(outbox_has_clients(&outbox));
}

static void test_a_cursor_is_the_logged_event_before_what_is_owed(void **state)
{
    struct event *unlogged = event_json(0, "{}");

    (void)state;
    newest_id = 44; /* this outbox did not owe it */
    outbox_join(&outbox, &a.client);
    assert_int_equal(outbox_client_cursor(&a.client, CURSOR(44)).id, 44);
    assert_int_equal(outbox_append(&outbox, unlogged, CURSOR(newest_id), SL_SLICE_NONE, 1), 0);
    assert_int_equal(outbox_client_cursor(&a.client, CURSOR(44)).id, 44);
    append(50);
    append(60);
    assert_int_equal(outbox_client_cursor(&a.client, CURSOR(60)).id, 44);
    outbox_join(&outbox, &b.client);
    append(70);
    assert_int_equal(outbox_client_cursor(&b.client, CURSOR(70)).id, 60);
    outbox_flush(&outbox, 1);
    assert_int_equal(outbox_client_cursor(&a.client, CURSOR(70)).id, 70);
    outbox_leave(&a.client);
    assert_int_equal(outbox_client_cursor(&a.client, CURSOR(71)).id, 71);
    event_unref(unlogged);
}

static void test_a_cursor_never_lies_behind_what_is_owed(void **state)
{
    (void)state;
    outbox_join(&outbox, &a.client);
    append(50); /* the first event since the start */
    assert_int_equal(outbox_client_cursor(&a.client, CURSOR(50)).id, 49);
    outbox_flush(&outbox, 1);
    append(40); /* after a failover */
    assert_int_equal(outbox_client_cursor(&a.client, CURSOR(50)).id, 39);
}

static void test_what_a_client_is_owed_and_for_how_long(void **state)
{
    struct client_owed owed;

    (void)state;
    outbox_client_owed(&a.client, 9, &owed); /* in no outbox */
    assert_int_equal(owed.events, 0);
    outbox_join(&outbox, &a.client);
    outbox_client_owed(&a.client, 9, &owed);
    assert_int_equal(owed.events, 0);
    a.room = strlen(CHUNK(1)) + 3;
    for (uint64_t id = 1; id <= 4; id++) {
        struct event *event = event_json(id, "{\"n\":0}");

        event->received_us = 100000 * id;
        assert_int_equal(outbox_append(&outbox, event, CURSOR(newest_id), SL_SLICE_NONE, 1), 0);
        event_unref(event);
    }
    outbox_flush(&outbox, 1); /* the second one is held by the transport, because it was cut */
    outbox_client_owed(&a.client, 450, &owed);
    assert_int_equal(owed.events, 2);
    assert_int_equal(owed.bytes, 2 * strlen(CHUNK(1)));
    assert_int_equal(owed.waited_ms, 150);
    outbox_client_owed(&a.client, 290, &owed); /* one millisecond apart */
    assert_int_equal(owed.waited_ms, 0);
    make_room(&a, FAKE_UNLIMITED);
    outbox_client_owed(&a.client, 450, &owed);
    assert_int_equal(owed.events + owed.bytes + owed.waited_ms, 0);
    fake_client_expect(&a, CHUNK(0) CHUNK(0) CHUNK(0) CHUNK(0));
}

static uint64_t timed(const struct metrics_board *board)
{
    struct buffer text = BUFFER_INIT;
    unsigned long long count;
    const char *line;

    metrics_print(board, &text);
    line = strstr(buffer_str(&text), "sluice_delivery_seconds_count ");
    assert_non_null(line);
    assert_int_equal(sscanf(line, "sluice_delivery_seconds_count %llu", &count), 1);
    buffer_done(&text);
    return count;
}

static void test_each_send_that_took_something_is_timed_once(void **state)
{
    struct metrics_board *board = metrics_board_new(1);
    struct fake_client crowd[40];

    (void)state;
    assert_non_null(board);
    outbox.settings.metrics = metrics_slot(board, 0);
    outbox_join(&outbox, &a.client);
    append(1);
    append(2);
    assert_int_equal(timed(board), 0);
    outbox_flush(&outbox, 1);
    assert_int_equal(timed(board), 1);

    b.room = 0;
    outbox_join(&outbox, &b.client);
    append(3);
    outbox_join(&outbox, &c.client);
    append(4);
    outbox_flush(&outbox, 1); /* to those in step; the full one; the one that has just joined */
    assert_int_equal(timed(board), 3);
    make_room(&b, 3); /* which only reports room */
    assert_int_equal(timed(board), 4);
    make_room(&b, FAKE_UNLIMITED);
    assert_int_equal(timed(board), 5);
    fake_client_expect(&b, CHUNK(3) CHUNK(4));

    for (size_t i = 0; i < 40; i++) {
        fake_client_init(&crowd[i], FORMAT_NDJSON, head);
        outbox_join(&outbox, &crowd[i].client);
    }
    crowd[7].send_error = -EPIPE;
    append(5);
    outbox_flush(&outbox, 1);
    assert_int_equal(timed(board), 5 + 3 + 39);
    for (size_t i = 0; i < 40; i++) {
        outbox_leave(&crowd[i].client);
        fake_client_done(&crowd[i]);
    }
    metrics_board_free(board);
}

static void test_a_broken_client_costs_nobody_else_anything(void **state)
{
    struct client_owed owed;

    (void)state;
    outbox_join(&outbox, &a.client);
    outbox_join(&outbox, &b.client);
    outbox_join(&outbox, &c.client);
    a.send_error = -EPIPE;
    b.room = 4;
    b.hold_error = -ENOMEM;
    append(1);
    outbox_flush(&outbox, 1);
    assert_int_equal(a.breaks, 1);
    assert_int_equal(b.breaks, 1);
    fake_client_expect(&c, CHUNK(1));
    append(2);
    outbox_flush(&outbox, 1);
    assert_int_equal(a.sends + b.sends, 2);
    fake_client_expect(&c, CHUNK(2));
    assert_int_equal(outbox.first, outbox.next);
    outbox_client_owed(&a.client, 1, &owed); /* what it was owed is dropped */
    assert_int_equal(owed.events + owed.bytes + owed.waited_ms, 0);
}

static void test_everyone_is_evicted_wherever_they_stand(void **state)
{
    (void)state;
    outbox_join(&outbox, &a.client);
    outbox_join(&outbox, &b.client);
    a.room = 0;
    append(1);
    outbox_flush(&outbox, 1);
    append(2);
    outbox_join(&outbox, &c.client);
    append(3);
    outbox_evict_all(&outbox, DISCONNECT_INTERNAL);
    assert_int_equal(a.disconnect_cursor.id, 0);
    assert_int_equal(b.disconnect_cursor.id, 1);
    assert_int_equal(c.disconnect_cursor.id, 2);
    assert_int_equal(a.evictions + b.evictions + c.evictions, 3);
    assert_int_equal(c.disconnect_reason, DISCONNECT_INTERNAL);
    outbox_flush(&outbox, 1);
    fake_client_expect(&b, CHUNK(1));
    fake_client_expect(&c, "");
}

/* Otherwise a keep-alive in the same turn would send it a cursor past events that it never got. */
static void test_an_evicted_client_is_not_served(void **state)
{
    (void)state;
    outbox_join(&outbox, &a.client);
    assert_true(outbox_client_is_served(&a.client));
    outbox_evict_all(&outbox, DISCONNECT_INTERNAL);
    assert_false(outbox_client_is_served(&a.client));
    outbox_leave(&a.client);
    assert_true(outbox_client_is_served(&a.client)); /* nobody owes it anything */
}

static void test_an_append_without_memory_owes_nobody_anything(void **state)
{
    struct event *event = event_json(9, "{\"n\":9}");
    int r = -ENOMEM;

    (void)state;
    begin_with(&(struct outbox_settings){.format = FORMAT_WEBSOCKET, .max_owed_bytes = 1 << 20});
    outbox_join(&outbox, &a.client);
    for (uint64_t n = 0; r < 0; n++) {
        assert_true(n < 10);
        mem_fail_after(n);
        r = outbox_append(&outbox, event, CURSOR(newest_id),
                          n % 2 ? SL_SLICE(",\"t\":1") : SL_SLICE_NONE, 1);
        mem_fail_never();
        assert_int_equal(r, r < 0 ? -ENOMEM : 0);
        assert_int_equal(event->refs, r < 0 ? 1 : 2);
        assert_int_equal(outbox_client_is_served(&a.client), r < 0);
    }
    outbox_flush(&outbox, 1);
    assert_true(a.received.size > 0);
    event_unref(event);
}

/* --- random operations ------------------------------------------------------------------------ */

enum { MAX_CLIENTS = 12, MAX_PUBLISHED = 400, STEPS = 500 };

struct published {
    struct event *event;
    struct buffer frame;
    uint64_t cursor; /* of a client that has everything before it */
};

struct model_client {
    struct fake_client fake;
    bool is_member;
    bool was_evicted;
    size_t at;     /* what it must receive next: index in `published` */
    size_t offset; /* bytes of that frame that it has received already */
};

static struct model {
    unsigned seed;
    uint64_t random;
    struct outbox outbox;
    struct outbox_counts counts;
    struct published published[MAX_PUBLISHED];
    size_t published_count;
    struct model_client clients[MAX_CLIENTS];
    uint64_t now_ms;
} model;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_msg("seed %u, %zu published: %s", model.seed, model.published_count, #condition); \
    } while (0)

static size_t below(size_t n)
{
    return stable_hash(model.random++) % n;
}

/* Checks that `bytes` continue what must be received at (*at, *offset), and advances these. */
static void check_bytes(struct sl_slice bytes, size_t *at, size_t *offset)
{
    while (bytes.size > 0) {
        struct sl_slice frame;
        size_t size;

        EXPECT(*at < model.published_count);
        frame = sl_slice_from(buffer_slice(&model.published[*at].frame), *offset);
        size = bytes.size < frame.size ? bytes.size : frame.size;
        EXPECT(memcmp(bytes.data, frame.data, size) == 0);
        bytes = sl_slice_from(bytes, size);
        *offset += size;
        if (size == frame.size) {
            ++*at;
            *offset = 0;
        }
    }
}

static uint64_t expected_cursor(size_t at)
{
    while (at < model.published_count && !model.published[at].event->id)
        at++;
    if (at < model.published_count && model.published[at].cursor < newest_id)
        return model.published[at].cursor;
    return newest_id;
}

static size_t bytes_from(size_t at)
{
    size_t bytes = 0;

    for (; at < model.published_count; at++)
        bytes += model.published[at].frame.size;
    return bytes;
}

/* Checks everything received so far; returns the index of the first frame that has not been passed
 * to the transport. */
static size_t check_client(struct model_client *client)
{
    size_t at, offset;

    check_bytes(buffer_slice(&client->fake.received), &client->at, &client->offset);
    buffer_clear(&client->fake.received);
    at = client->at;
    offset = client->offset;
    check_bytes(buffer_slice(&client->fake.held), &at, &offset);
    EXPECT(offset == 0 || client->fake.breaks > 0); /* no frame stays incomplete */
    if (client->fake.evictions > 0 && !client->was_evicted) {
        client->was_evicted = true;
        EXPECT(client->fake.evictions == 1);
        EXPECT(client->fake.disconnect_cursor.id == expected_cursor(at));
        if (client->fake.disconnect_reason == DISCONNECT_TOO_SLOW)
            EXPECT(bytes_from(at) > model.outbox.settings.max_owed_bytes);
    }
    return at;
}

static void check_everyone(void)
{
    for (size_t i = 0; i < MAX_CLIENTS; i++) {
        if (model.clients[i].is_member)
            check_client(&model.clients[i]);
    }
}

/* After a flush only clients with a full socket are owed something, nobody is owed too much, and
 * exactly what somebody is owed is stored. */
static void check_after_flush(void)
{
    size_t oldest = model.published_count;

    for (size_t i = 0; i < MAX_CLIENTS; i++) {
        struct model_client *client = &model.clients[i];
        size_t at;

        if (!client->is_member)
            continue;
        at = check_client(client);
        if (!fake_client_lives(&client->fake))
            continue;
        EXPECT(at == model.published_count || client->fake.awaits_writable);
        EXPECT(outbox_client_is_served(&client->fake.client) ==
               (at == model.published_count && client->fake.client.state == CLIENT_IN_STEP));
        EXPECT(outbox_client_cursor(&client->fake.client, CURSOR(newest_id)).id ==
               expected_cursor(at));
        EXPECT(bytes_from(at) <= model.outbox.settings.max_owed_bytes);
        oldest = at < oldest ? at : oldest;
    }
    for (size_t i = 0; i < model.published_count; i++)
        EXPECT(model.published[i].event->refs == (i < oldest ? 1 : 2));
}

static void step_join(struct model_client *client)
{
    if (client->is_member)
        return;
    fake_client_init(&client->fake, model.outbox.settings.format, head);
    *client =
        (struct model_client){.fake = client->fake, .is_member = true, .at = model.published_count};
    client->fake.room = below(3) ? FAKE_UNLIMITED : below(400);
    outbox_join(&model.outbox, &client->fake.client);
}

static void step_leave(struct model_client *client)
{
    if (!client->is_member)
        return;
    check_client(client);
    outbox_leave(&client->fake.client);
    fake_client_done(&client->fake);
    client->is_member = false;
}

static void step_append(void)
{
    struct published *published = &model.published[model.published_count];
    static const char tail_text[] = ",\"matching_rules\":[{\"id\":\"one\",\"tag\":\"two\"}]";
    struct sl_slice tail = SL_SLICE_NONE, frame;
    struct buffer json = BUFFER_INIT;
    uint64_t id = below(4) ? newest_id + below(30) - 3 : 0; /* mostly rising */
    int r;

    if (model.published_count == MAX_PUBLISHED)
        return;
    buffer_append_format(&json, "{\"n\":%zu,\"x\":\"", model.published_count);
    for (size_t more = below(below(8) ? 60 : 300); more > 0; more--)
        buffer_append_char(&json, (char)('a' + below(26)));
    buffer_append_str(&json, "\"}");
    if (model.outbox.settings.format == FORMAT_WEBSOCKET && below(2))
        tail = sl_slice(tail_text, sizeof(tail_text) - 1);
    *published = (struct published){.event = event_json(id, buffer_str(&json)),
                                    .cursor = newest_id < id ? newest_id : id - 1};

    if (below(10) == 0)
        mem_fail_after(below(4));
    r = outbox_append(&model.outbox, published->event, CURSOR(newest_id), tail, model.now_ms);
    mem_fail_never();
    EXPECT(published->event->refs == (r < 0 ? 1 : 2));
    if (r < 0) {
        event_unref(published->event);
        buffer_done(&json);
        return;
    }
    if (tail.data) {
        json.size--;
        buffer_append_slice(&json, tail);
        buffer_append_char(&json, '}');
        frame_append_message(&published->frame, FORMAT_WEBSOCKET, "", buffer_slice(&json));
    } else {
        frame = frame_of_event(published->event, model.outbox.settings.format);
        buffer_append_slice(&published->frame,
                            model.outbox.settings.unchunked ? frame_unchunk(frame) : frame);
    }
    if (id > newest_id)
        newest_id = id;
    model.published_count++;
    buffer_done(&json);
}

static void step_room(struct model_client *client)
{
    if (!client->is_member)
        return;
    if (below(8) == 0) {
        client->fake.room = below(200); /* from now on it is slow */
        return;
    }
    if (fake_client_make_room(&client->fake, below(6) ? below(300) : FAKE_UNLIMITED) &&
        fake_client_lives(&client->fake))
        outbox_client_writable(&client->fake.client, model.now_ms);
    else if (!client->fake.awaits_writable && below(2))
        outbox_client_writable(&client->fake.client, model.now_ms); /* without need */
}

static void step_break(struct model_client *client)
{
    if (below(2))
        client->fake.send_error = -EPIPE;
    else
        client->fake.hold_error = -ENOMEM;
}

static void step(void)
{
    struct model_client *client = &model.clients[below(MAX_CLIENTS)];
    size_t dice = below(100);

    model.now_ms += below(5);
    if (dice < 10) {
        step_join(client);
    } else if (dice < 13) {
        step_leave(client);
    } else if (dice < 50) {
        step_append();
    } else if (dice < 70) {
        outbox_flush(&model.outbox, model.now_ms);
        check_after_flush();
    } else if (dice < 98) {
        step_room(client);
    } else if (dice < 99) {
        step_break(client);
    } else if (below(20) == 0) {
        outbox_evict_all(&model.outbox, DISCONNECT_INTERNAL);
    }
    check_everyone();
}

/* Every socket has room again: all remaining clients receive everything, and nothing is stored. */
static void finish(void)
{
    outbox_flush(&model.outbox, model.now_ms);
    for (size_t i = 0; i < MAX_CLIENTS; i++) {
        struct model_client *client = &model.clients[i];

        if (client->is_member && fake_client_make_room(&client->fake, FAKE_UNLIMITED) &&
            fake_client_lives(&client->fake))
            outbox_client_writable(&client->fake.client, model.now_ms);
    }
    for (size_t i = 0; i < model.published_count; i++)
        EXPECT(model.published[i].event->refs == 1);
    for (size_t i = 0; i < MAX_CLIENTS; i++) {
        struct model_client *client = &model.clients[i];

        if (client->is_member && fake_client_lives(&client->fake)) {
            EXPECT(check_client(client) == model.published_count);
            EXPECT(client->fake.held.size == 0);
        }
        step_leave(client);
    }
    EXPECT(!outbox_has_clients(&model.outbox));
    outbox_done(&model.outbox);
    for (size_t i = 0; i < model.published_count; i++) {
        event_unref(model.published[i].event);
        buffer_done(&model.published[i].frame);
    }
}

static void run_model(unsigned seed, const struct outbox_settings *settings)
{
    memset(&model, 0, sizeof(model));
    model.seed = seed;
    model.random = (uint64_t)seed << 32;
    newest_id = 10;
    outbox_init(&model.outbox, settings, &model.counts);
    model.outbox.settings.overrun = overrun;
    for (int i = 0; i < STEPS; i++)
        step();
    finish();
}

static void test_every_client_gets_exactly_what_was_appended_after_it_joined(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 300; seed++) {
        struct outbox_settings settings = {
            .format = (enum stream_format)(seed % FORMAT_COUNT),
            .unchunked = seed % FORMAT_COUNT != FORMAT_WEBSOCKET && seed % 3 == 0,
            .max_owed_bytes = seed % 5 ? 1500 : 100000,
        };

        run_model(seed, &settings);
    }
}

#define OUTBOX_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OUTBOX_TEST(test_one_flush_sends_all_that_is_new_to_everyone_in_one_call_each),
        OUTBOX_TEST(test_a_client_that_joins_while_events_are_gathered_gets_later_ones_only),
        OUTBOX_TEST(test_a_frame_that_is_cut_is_finished_before_the_next_one),
        OUTBOX_TEST(test_a_cut_between_two_frames_does_not_leave_the_client_waiting),
        OUTBOX_TEST(test_a_slow_client_goes_on_alone_and_keeps_step_again),
        OUTBOX_TEST(test_what_is_new_goes_out_in_several_calls_when_it_is_very_much),
        OUTBOX_TEST(test_http_1_0_clients_get_the_insides_of_the_chunks),
        OUTBOX_TEST(test_a_tail_goes_before_the_last_brace_wherever_the_frame_is_cut),
        OUTBOX_TEST(test_an_empty_tail_changes_nothing),
        OUTBOX_TEST(test_an_event_is_let_go_of_when_the_last_client_has_passed_it),
        OUTBOX_TEST(test_those_behind_keep_only_what_they_still_need),
        OUTBOX_TEST(test_a_client_that_is_owed_too_much_is_evicted_with_its_cursor),
        OUTBOX_TEST(test_a_cursor_is_the_logged_event_before_what_is_owed),
        OUTBOX_TEST(test_a_cursor_never_lies_behind_what_is_owed),
        OUTBOX_TEST(test_what_a_client_is_owed_and_for_how_long),
        OUTBOX_TEST(test_each_send_that_took_something_is_timed_once),
        OUTBOX_TEST(test_a_broken_client_costs_nobody_else_anything),
        OUTBOX_TEST(test_everyone_is_evicted_wherever_they_stand),
        OUTBOX_TEST(test_an_evicted_client_is_not_served),
        OUTBOX_TEST(test_an_append_without_memory_owes_nobody_anything),
        cmocka_unit_test(test_every_client_gets_exactly_what_was_appended_after_it_joined),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
