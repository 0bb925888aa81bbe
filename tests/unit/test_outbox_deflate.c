/* test_outbox_deflate.c - a random history of clients that join, leave, fall behind, return and are
 * sent messages of their own, in several outboxes that share too little memory for histories. Each
 * client has a zlib inflater; after each flush it must have received what the client is owed, and
 * no more. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/stable_hash.h"
#include "gateway/delivery/compressor.h"
#include "gateway/delivery/frame.h"
#include "gateway/delivery/outbox.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/fake_client.h"

enum { OUTBOXES = 3, MAX_CLIENTS = 12, STEPS = 600, MAX_APPENDED = 600 };

struct model_client {
    struct fake_client fake;
    size_t outbox;
    bool is_member;
    z_stream inflater;
    struct buffer wire;     /* not decoded yet */
    struct buffer said;     /* decoded: one line for each WebSocket message */
    struct buffer expected; /* up to `at`, including the client's own messages */
    uint64_t at;
    uint64_t deflated; /* messages or chunks */
};

struct model_outbox {
    struct outbox outbox;
    struct buffer insides[MAX_APPENDED]; /* by position */
};

static struct model {
    unsigned seed;
    uint64_t random, now_ms, next_id;
    struct compressor *compressor;
    struct outbox_counts counts;
    struct model_outbox outboxes[OUTBOXES];
    struct model_client clients[MAX_CLIENTS];
    uint64_t with_history; /* how often a client was found to be in step with one */
} model;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_msg("seed %u: %s", model.seed, #condition);                                       \
    } while (0)

static size_t below(size_t n)
{
    return stable_hash(model.random++) % n;
}

static struct sl_cursor head(void)
{
    return (struct sl_cursor){.id = model.next_id};
}

static void overrun(struct client *client)
{
    client->transport->evict(client, DISCONNECT_TOO_SLOW);
}

static const struct outbox_settings *settings_of(const struct model_client *client)
{
    return &model.outboxes[client->outbox].outbox.settings;
}

static bool is_websocket(const struct model_client *client)
{
    return settings_of(client)->format == FORMAT_WEBSOCKET;
}

/* --- a decoder --- */

static void inflate_block(struct model_client *client, struct sl_slice block)
{
    z_stream *stream = &client->inflater;

    stream->next_in = (Bytef *)block.data;
    stream->avail_in = (uInt)block.size;
    do {
        char *room = buffer_reserve(&client->said, 4096);

        stream->next_out = (Bytef *)room;
        stream->avail_out = 4096;
        switch (inflate(stream, Z_SYNC_FLUSH)) {
        case Z_OK:
        case Z_BUF_ERROR:
            break;
        default:
            fail_msg("seed %u: %s", model.seed, stream->msg ? stream->msg : "it ends");
        }
        client->said.size += 4096 - stream->avail_out;
    } while (stream->avail_out == 0);
    EXPECT(stream->avail_in == 0);
}

static void decode_message(struct model_client *client, bool is_deflated, struct sl_slice payload)
{
    if (!is_deflated) {
        buffer_append_slice(&client->said, payload);
    } else {
        if (client->fake.client.window_bits == 0)
            EXPECT(inflateReset(&client->inflater) == Z_OK);
        inflate_block(client, payload);
        inflate_block(client, SL_SLICE("\0\0\xff\xff"));
        client->deflated++;
    }
    buffer_append_char(&client->said, '\n');
}

/* Returns the size of the frame at the beginning; 0: incomplete. */
static size_t decode_frame(struct model_client *client)
{
    const unsigned char *bytes = (const unsigned char *)client->wire.data;
    size_t size, head_size = 2;

    if (client->wire.size < 4)
        return 0;
    EXPECT((bytes[0] & 0xbf) == 0x81 && bytes[1] < 127);
    size = bytes[1];
    if (size == 126) {
        size = (size_t)bytes[2] << 8 | bytes[3];
        head_size = 4;
    }
    if (client->wire.size < head_size + size)
        return 0;
    decode_message(client, bytes[0] & 0x40, sl_slice(client->wire.data + head_size, size));
    return head_size + size;
}

static size_t decode_chunk(struct model_client *client)
{
    const char *line = memchr(client->wire.data, '\n', client->wire.size);
    size_t size, head_size;

    if (!line)
        return 0;
    head_size = (size_t)(line - client->wire.data) + 1;
    size = strtoul(client->wire.data, NULL, 16);
    EXPECT(size > 0); /* which would end the body */
    if (client->wire.size < head_size + size + 2)
        return 0;
    inflate_block(client, sl_slice(client->wire.data + head_size, size));
    client->deflated++;
    EXPECT(memcmp(client->wire.data + head_size + size, "\r\n", 2) == 0);
    return head_size + size + 2;
}

static void decode(struct model_client *client)
{
    size_t size = 1;

    buffer_append_slice(&client->wire, buffer_slice(&client->fake.received));
    buffer_clear(&client->fake.received);
    if (settings_of(client)->unchunked && client->wire.size > 0) {
        inflate_block(client, buffer_slice(&client->wire));
        buffer_clear(&client->wire);
    }
    while (client->wire.size > 0 && size > 0) {
        size = is_websocket(client) ? decode_frame(client) : decode_chunk(client);
        buffer_consume(&client->wire, size);
    }
}

/* --- what it must receive --- */

static void expect_until(struct model_client *client, uint64_t position)
{
    for (; client->at < position; client->at++) {
        buffer_append_slice(&client->expected,
                            buffer_slice(&model.outboxes[client->outbox].insides[client->at]));
        if (is_websocket(client))
            buffer_append_char(&client->expected, '\n');
    }
}

static void check_client(struct model_client *client)
{
    const struct buffer *said = &client->said, *expected = &client->expected;

    decode(client);
    expect_until(client,
                 client->fake.breaks == 0 /* otherwise it may have a part of what comes next */
                     ? client->fake.client.at
                     : model.outboxes[client->outbox].outbox.next);
    EXPECT(said->size <= expected->size);
    EXPECT(said->size == 0 || memcmp(said->data, expected->data, said->size) == 0);
    if (client->fake.held.size == 0 && fake_client_lives(&client->fake)) {
        EXPECT(said->size == expected->size);
        EXPECT(client->wire.size == 0);
    }
}

static void check_after_flush(struct model_outbox *flushed)
{
    for (size_t i = 0; i < MAX_CLIENTS; i++) {
        struct model_client *client = &model.clients[i];
        const struct client *fake = &client->fake.client;

        if (!client->is_member || fake->outbox != &flushed->outbox)
            continue;
        check_client(client);
        if (fake_client_lives(&client->fake) && !client->fake.awaits_writable)
            EXPECT(fake->at == flushed->outbox.next);
        model.with_history += fake->state == CLIENT_IN_STEP && flushed->outbox.history.deflater;
    }
}

/* --- steps --- */

static void step_join(struct model_client *client)
{
    struct outbox *outbox;
    unsigned bits;

    if (client->is_member)
        return;
    *client = (struct model_client){.outbox = below(OUTBOXES), .is_member = true};
    outbox = &model.outboxes[client->outbox].outbox;
    fake_client_init(&client->fake, outbox->settings.format, head);
    client->fake.client.encoding = ENCODING_DEFLATE;
    client->fake.client.window_bits = outbox->settings.window_bits;
    bits = outbox->settings.window_bits ? outbox->settings.window_bits : 15;
    EXPECT(inflateInit2(&client->inflater, -(int)bits) == Z_OK);
    client->fake.room = below(3) ? FAKE_UNLIMITED : below(2000);
    outbox_join(outbox, &client->fake.client);
    client->at = client->fake.client.at;
}

static void done(struct model_client *client)
{
    fake_client_done(&client->fake);
    inflateEnd(&client->inflater);
    buffer_done(&client->wire);
    buffer_done(&client->said);
    buffer_done(&client->expected);
    client->is_member = false;
}

/* The sum is that of everything that was sent or is held. */
static void step_leave(struct model_client *client)
{
    struct gzip_sum sum = {0};

    if (!client->is_member)
        return;
    check_client(client);
    outbox_leave(&client->fake.client);
    gzip_sum_add(&sum, buffer_slice(&client->expected));
    if (!is_websocket(client) && client->fake.breaks == 0) {
        EXPECT(client->fake.client.sum.bytes == sum.bytes);
        EXPECT(client->fake.client.sum.crc == sum.crc);
    }
    done(client);
}

static struct event *event_new(void)
{
    static const char *const words[] = {"tea", "coffee", "stream", "\"user\":{\"id\":\"7\"},"};
    struct buffer json = BUFFER_INIT;
    struct event *event;

    buffer_append_format(&json, "{\"id\":\"%" PRIu64 "\",\"text\":\"", model.next_id);
    for (size_t n = below(below(20) ? 60 : 2000); n > 0; n--) {
        if (below(3))
            buffer_append_str(&json, words[below(4)]);
        else
            buffer_append_format(&json, "%zx", below(100000));
    }
    buffer_append_str(&json, "\"}");
    event = event_new_control(EVENT_WARNING, buffer_slice(&json));
    event->id = model.next_id++;
    buffer_done(&json);
    return event;
}

static void step_append(struct model_outbox *to)
{
    struct outbox *outbox = &to->outbox;
    struct event *event = event_new();
    struct buffer *inside = &to->insides[outbox->next];
    bool has_tail =
        !outbox->settings.has_history && outbox->settings.format == FORMAT_WEBSOCKET && below(2);
    struct sl_slice tail =
        has_tail ? SL_SLICE(",\"matching_rules\":[{\"id\":\"one\"}]") : SL_SLICE_NONE;
    struct sl_slice plain = frame_inside(event, outbox->settings.format);
    int r;

    if (below(10) == 0)
        mem_fail_after(below(4));
    r = outbox_append(outbox, event, CURSOR(event->id - 1), tail, model.now_ms);
    mem_fail_never();
    if (r == 0 && has_tail) {
        buffer_append(inside, plain.data, plain.size - 1);
        buffer_append_slice(inside, tail);
        buffer_append_char(inside, '}');
    } else if (r == 0) {
        buffer_append_slice(inside, plain);
    }
    event_unref(event);
}

/* For all clients with gzip, when nothing waits for a flush. */
static void step_keep_alive(struct model_outbox *to)
{
    struct outbox *outbox = &to->outbox;
    const struct sl_cursor cursor = head();
    struct buffer *inside = &to->insides[outbox->next];
    uint64_t resets = compressor_counts(model.compressor)->resets, next = outbox->next;
    struct sl_slice plain;
    struct event *event;

    if (!outbox_shares_gzip(outbox) || outbox->flushed != outbox->next)
        return;
    event = frame_keepalive_event(outbox->settings.format, &cursor, below(2));
    plain = frame_inside(event, outbox->settings.format);
    if (below(10) == 0)
        mem_fail_after(0);
    outbox_keep_alive(outbox, event, CURSOR(model.next_id), model.now_ms);
    mem_fail_never();
    if (outbox->next > next)
        buffer_append_slice(inside, plain);
    event_unref(event);
    EXPECT(compressor_counts(model.compressor)->resets == resets);
    check_after_flush(to);
}

static void write_own(struct model_client *client, struct sl_slice bytes)
{
    struct client *fake = &client->fake.client;
    struct iovec piece = {(char *)bytes.data, bytes.size};
    ssize_t sent = 0;

    if (!fake->transport->is_blocked(fake))
        sent = fake->transport->send(fake, &piece, 1);
    EXPECT(sent >= 0);
    piece.iov_base = (char *)piece.iov_base + sent;
    piece.iov_len -= (size_t)sent;
    if (piece.iov_len > 0)
        EXPECT(fake->transport->hold(fake, &piece, 1) == 0);
}

/* Sends something to one client like stream.c does. */
static void step_say(struct model_client *client)
{
    struct buffer block = BUFFER_INIT, frame = BUFFER_INIT;
    char said[64];

    if (!client->is_member || !fake_client_lives(&client->fake) || client->fake.send_error ||
        client->fake.hold_error)
        return;
    snprintf(said, sizeof(said), "{\"type\":\"warning\",\"n\":%zu}", below(1000));
    if (is_websocket(client)) {
        frame_append_message(&frame, FORMAT_WEBSOCKET, NULL, sl_slice_str(said));
    } else {
        struct gzip_sum sum = {0};

        EXPECT(compressor_append_block(model.compressor,
                                       (struct coding){.encoding = ENCODING_DEFLATE},
                                       sl_slice_str(said), &block) == 0);
        gzip_sum_add(&sum, sl_slice_str(said));
        outbox_client_sent_own(&client->fake.client, &sum);
        if (settings_of(client)->unchunked)
            buffer_append_slice(&frame, buffer_slice(&block));
        else
            frame_append_chunk(&frame, buffer_slice(&block));
    }
    expect_until(client, client->fake.client.at);
    buffer_append_str(&client->expected, said);
    if (is_websocket(client))
        buffer_append_char(&client->expected, '\n');
    write_own(client, buffer_slice(&frame));
    buffer_done(&block);
    buffer_done(&frame);
}

static void step_room(struct model_client *client)
{
    if (!client->is_member)
        return;
    if (below(8) == 0)
        client->fake.room = below(500); /* from now on it is slow */
    else if (fake_client_make_room(&client->fake, below(4) ? below(1000) : FAKE_UNLIMITED) &&
             fake_client_lives(&client->fake))
        outbox_client_writable(&client->fake.client, model.now_ms);
}

static void step(void)
{
    struct model_client *client = &model.clients[below(MAX_CLIENTS)];
    struct model_outbox *outbox = &model.outboxes[below(OUTBOXES)];
    size_t dice = below(100);

    model.now_ms += below(2000);
    if (dice < 10) {
        step_join(client);
    } else if (dice < 12) {
        step_leave(client);
    } else if (dice < 45) {
        step_append(outbox);
    } else if (dice < 72) {
        outbox_flush(&outbox->outbox, model.now_ms);
        check_after_flush(outbox);
    } else if (dice < 75) {
        step_say(client);
    } else if (dice < 80) {
        step_keep_alive(outbox);
    } else if (dice < 99) {
        step_room(client);
    } else if (client->is_member) {
        client->fake.send_error = -EPIPE;
    }
}

static void finish(void)
{
    for (size_t i = 0; i < OUTBOXES; i++)
        outbox_flush(&model.outboxes[i].outbox, model.now_ms);
    for (size_t i = 0; i < MAX_CLIENTS; i++) {
        struct model_client *client = &model.clients[i];

        if (client->is_member && fake_client_make_room(&client->fake, FAKE_UNLIMITED) &&
            fake_client_lives(&client->fake))
            outbox_client_writable(&client->fake.client, model.now_ms);
        if (client->is_member && fake_client_lives(&client->fake)) {
            check_client(client);
            EXPECT(client->fake.held.size == 0);
            EXPECT(client->fake.client.at == client->fake.client.outbox->next);
        }
        step_leave(client);
    }
    for (size_t i = 0; i < OUTBOXES; i++) {
        for (uint64_t p = 0; p < model.outboxes[i].outbox.next; p++)
            buffer_done(&model.outboxes[i].insides[p]);
        outbox_done(&model.outboxes[i].outbox);
    }
    EXPECT(compressor_counts(model.compressor)->history_bytes == 0);
    EXPECT(compressor_counts(model.compressor)->refused == 0);
    compressor_free(model.compressor);
}

static void run_model(unsigned seed)
{
    const struct compressor_settings compression = {
        .level = 1 + (int)(seed % 9),
        .reset_flushes = (uint32_t[]){1, 3, 30}[seed % 3],
        .max_bytes = seed % 4 ? 600 << 10 : 0,
    };
    static const uint8_t window_bits[] = {15, 12, 15, 0, 13};

    memset(&model, 0, sizeof(model));
    model.seed = seed;
    model.random = (uint64_t)seed << 32;
    model.next_id = 10;
    model.compressor = compressor_new(&compression);
    for (size_t i = 0; i < OUTBOXES; i++) {
        enum stream_format format = (enum stream_format)((seed + i) % FORMAT_COUNT);
        uint8_t bits = format == FORMAT_WEBSOCKET ? window_bits[seed % 5] : 15;
        const struct outbox_settings settings = {
            .format = format,
            .encoding = ENCODING_DEFLATE,
            .unchunked = format != FORMAT_WEBSOCKET && (seed + i) % 5 == 0,
            .window_bits = bits,
            .has_history = bits > 0 && (seed + i) % 7,
            .compressor = model.compressor,
            .max_owed_bytes = seed % 5 ? 20000 : 1000000,
            .overrun = overrun,
        };

        outbox_init(&model.outboxes[i].outbox, &settings, &model.counts);
    }
    for (int i = 0; i < STEPS; i++)
        step();
    finish();
}

static void test_everyone_decodes_what_it_was_owed(void **state)
{
    uint64_t with_history = 0;

    (void)state;
    for (unsigned seed = 1; seed <= 200; seed++) {
        run_model(seed);
        with_history += model.with_history;
    }
    assert_true(with_history > 1000); /* otherwise this test has tried nothing */
}

/* --- single cases --- */

static struct outbox outbox;
static struct outbox_counts counts;

static void begin(enum stream_format format, size_t max_bytes)
{
    const struct compressor_settings compression = {
        .level = 6, .zstd_level = 3, .reset_flushes = 4, .max_bytes = max_bytes};
    struct outbox_settings settings = {.format = format,
                                       .encoding = ENCODING_DEFLATE,
                                       .window_bits = 15,
                                       .has_history = true,
                                       .max_owed_bytes = 1 << 20};

    model.compressor = settings.compressor = compressor_new(&compression);
    model.next_id = 10;
    outbox_init(&outbox, &settings, &counts);
}

static void end(void)
{
    outbox_done(&outbox);
    compressor_free(model.compressor);
}

static void join(struct fake_client *client)
{
    fake_client_init(client, outbox.settings.format, head);
    outbox_join(&outbox, &client->client);
}

static void leave(struct fake_client *client)
{
    outbox_leave(&client->client);
    fake_client_done(client);
}

/* The same text each time, so that a history makes it very short. Returns how many bytes the client
 * got. */
static size_t flush_one(struct fake_client *client)
{
    struct event *event = event_new_control(
        EVENT_WARNING, SL_SLICE("{\"text\":\"abcdefghijklmnopqrstuvwxyz 0123456789 and so on\"}"));
    size_t size;

    assert_int_equal(outbox_append(&outbox, event, CURSOR(1), SL_SLICE_NONE, 1), 0);
    event_unref(event);
    outbox_flush(&outbox, 1);
    size = client->received.size;
    buffer_clear(&client->received);
    return size;
}

static void test_who_comes_waits_for_the_reset_which_is_not_made_too_often(void **state)
{
    struct fake_client a, b;
    size_t alone;

    (void)state;
    begin(FORMAT_NDJSON, 1 << 20);
    join(&a);
    alone = flush_one(&a);
    assert_true(flush_one(&a) < alone / 2);
    join(&b);
    assert_int_equal(b.client.state, CLIENT_FRESH);
    assert_true(flush_one(&b) >= alone);
    assert_int_equal(compressor_counts(model.compressor)->resets, 0);
    flush_one(&a);
    buffer_clear(&b.received);
    assert_true(flush_one(&b) >= alone); /* the fifth: all histories start again */
    assert_int_equal(compressor_counts(model.compressor)->resets, 1);
    assert_int_equal(b.client.state, CLIENT_IN_STEP);
    assert_true(flush_one(&b) < alone / 2);
    leave(&a);
    leave(&b);
    end();
}

static void test_a_word_of_its_own_takes_a_client_out_of_the_history_inside_gzip_only(void **state)
{
    const struct gzip_sum said = {0};
    struct fake_client a, b;

    (void)state;
    begin(FORMAT_SSE, 1 << 20);
    join(&a);
    join(&b);
    flush_one(&a);
    assert_int_equal(a.client.state, CLIENT_IN_STEP);
    outbox_client_sent_own(&a.client, &said);
    assert_int_equal(a.client.state, CLIENT_FRESH);
    assert_int_equal(b.client.state, CLIENT_IN_STEP);
    leave(&b);
    flush_one(&a); /* nobody would lose anything: no need to wait */
    assert_int_equal(a.client.state, CLIENT_IN_STEP);
    leave(&a);
    end();
}

static void keep_alive(void)
{
    const struct sl_cursor cursor = head();
    struct event *event = frame_keepalive_event(outbox.settings.format, &cursor, false);

    outbox_keep_alive(&outbox, event, &cursor, 1);
    event_unref(event);
}

static void test_an_idle_outbox_keeps_its_history(void **state)
{
    struct fake_client a, b;
    size_t alone;

    (void)state;
    begin(FORMAT_SSE, 1 << 20);
    join(&a);
    alone = flush_one(&a);
    join(&b);
    for (int i = 0; i < 10; i++)
        keep_alive();
    assert_int_equal(a.client.state, CLIENT_IN_STEP);
    assert_int_equal(b.client.state, CLIENT_FRESH); /* it waits for events */
    assert_int_equal(compressor_counts(model.compressor)->resets, 0);
    assert_int_equal(a.client.sent_events, 1);
    buffer_clear(&a.received);
    assert_true(flush_one(&a) < alone / 2);
    assert_int_equal(a.client.sent_events, 2);
    leave(&a);
    leave(&b);
    end();
}

static void test_without_memory_in_a_flush_who_cannot_be_sent_has_to_go(void **state)
{
    struct event *event = event_new_control(EVENT_WARNING, SL_SLICE("{\"a\":1}"));
    struct fake_client a;

    (void)state;
    begin(FORMAT_WEBSOCKET, 0);
    join(&a);
    assert_int_equal(outbox_append(&outbox, event, CURSOR(1), SL_SLICE_NONE, 1), 0);
    mem_fail_after(0);
    outbox_flush(&outbox, 1);
    mem_fail_never();
    assert_int_equal(a.evictions, 1);
    assert_int_equal(a.disconnect_reason, DISCONNECT_INTERNAL);
    event_unref(event);
    leave(&a);
    end();
}

static void test_the_largest_outbox_takes_a_history_from_the_smallest(void **state)
{
    const struct compressor_settings settings = {
        .level = 6, .zstd_level = 3, .reset_flushes = 4, .max_bytes = 300 << 10};
    struct compressor *compressor = compressor_new(&settings);
    struct history small = {.clients = 10}, larger = {.clients = 19}, large = {.clients = 20};

    (void)state;
    compressor_hold(compressor, &small, 15, 1000);
    assert_non_null(small.deflater);
    compressor_hold(compressor, &larger, 15, 1000);
    assert_null(larger.deflater); /* switching repeatedly would cost more than it saves */
    assert_int_equal(compressor_counts(compressor)->refused, 1);
    compressor_hold(compressor, &large, 15, 1000);
    assert_non_null(large.deflater);
    assert_null(small.deflater);
    larger.clients = 100;
    compressor_hold(compressor, &larger, 15, 2000); /* it was refused recently */
    assert_null(larger.deflater);
    small.clients = 1;
    compressor_hold(compressor, &small, 15, 100000); /* the large one has been idle */
    assert_non_null(small.deflater);
    assert_null(large.deflater);
    assert_int_equal(compressor_counts(compressor)->histories, 1);
    compressor_release(compressor, &larger);
    assert_int_equal(compressor_counts(compressor)->refused, 0);
    compressor_release(compressor, &small);
    compressor_free(compressor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everyone_decodes_what_it_was_owed),
        cmocka_unit_test(test_who_comes_waits_for_the_reset_which_is_not_made_too_often),
        cmocka_unit_test(test_a_word_of_its_own_takes_a_client_out_of_the_history_inside_gzip_only),
        cmocka_unit_test(test_an_idle_outbox_keeps_its_history),
        cmocka_unit_test(test_without_memory_in_a_flush_who_cannot_be_sent_has_to_go),
        cmocka_unit_test(test_the_largest_outbox_takes_a_history_from_the_smallest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
