/* stream.c - the life of a stream: it begins, is kept alive, and ends with a reason.
 *
 * One timer a stream has the next of: its keep-alive, the end of its token, the deadline of its
 * leaving. A stream that ends is told why, behind all that is on its way to it, and has some time
 * to read that; then its connection is closed properly, and the peer's close, or a second deadline,
 * ends it. A stream that is evicted for slowness finds the message behind megabytes, so it gets
 * longer.
 *
 * Bounds: what is held of our own messages by MAX_HELD_BYTES, and for all streams together by
 * stream_memory.c; what a client is owed is delivery's business. */
#include "gateway/streams/stream.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stable_hash.h"
#include "filters/filter.h"
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/frame.h"
#include "gateway/delivery/outbox.h"
#include "gateway/delivery/rule_set.h"
#include "gateway/front/filter_json.h"
#include "gateway/intake/gap.h"
#include "src/model/id.h"
#include "src/model/moment.h"

enum {
    LEAVING_SLOWLY_MS = 60000, /* for the slow, who find it behind megabytes */
    CLOSING_MS = 1000,         /* to close, or answer the close, after that */
    MAX_HELD_BYTES = 1 << 20,  /* of our own messages to a client that does not read */
    UNTIL_RETRY_MS = 100,      /* who has not been sent everything yet is asked again */
    RETRY_MIN_MS = 500,
    RETRY_SPREAD_MS = 4500
};

static void on_timer(uv_timer_t *timer);

static uint64_t now_of(const struct stream *stream)
{
    return uv_now(stream->streams->settings.loop);
}

static struct metrics *metrics_of(const struct stream *stream)
{
    return stream->streams->settings.metrics;
}

static enum metric streams_by_kind(const struct stream_request *request)
{
    static_assert(STREAM_MANY == 5 && FORMAT_WEBSOCKET == 0,
                  "the rows end with many over WebSocket");

    return metric_at(METRIC_STREAMS_BY, request->stream * FORMAT_COUNT + request->format);
}

/* --- delivery's table --- */

static ssize_t client_send(struct client *client, const struct iovec *pieces, int count)
{
    return wire_send(&stream_of(client)->wire, pieces, count);
}

static int client_hold(struct client *client, const struct iovec *pieces, int count)
{
    struct stream *stream = stream_of(client);
    int r = wire_hold(&stream->wire, pieces, count);

    stream_memory_count(stream);
    return r;
}

static bool client_is_blocked(const struct client *client)
{
    return stream_of(client)->wire.is_blocked;
}

static void client_evict(struct client *client, enum disconnect_reason reason)
{
    stream_evict(stream_of(client), reason);
}

static void client_broken(struct client *client)
{
    stream_end(stream_of(client), STREAM_BROKEN);
}

static const struct transport transport = {
    .send = client_send,
    .hold = client_hold,
    .is_blocked = client_is_blocked,
    .evict = client_evict,
    .broken = client_broken,
};

/* --- what is said --- */

void stream_say(struct stream *stream, struct sl_slice frames)
{
    struct client *client = &stream->client;

    if (stream->end >= STREAM_PEER_LEFT || !stream->wire.lws || frames.size == 0)
        return;
    client->last_sent_ms = now_of(stream);
    client->sent_bytes += frames.size;
    if (wire_write(&stream->wire, frames) < 0 || stream->wire.held.size > MAX_HELD_BYTES)
        stream_end(stream, STREAM_BROKEN);
    stream_memory_count(stream);
}

/* In a compressed body a frame of ours is a block for this client alone, also one that says nothing
 * but a blank line: who reads behind a decoder waits for that, and would not see an empty one. */
static void compress(struct stream *stream, struct buffer *frame)
{
    struct compressor *compressor = deliver_compressor(stream->streams->settings.deliver);
    struct sl_slice said = frame_unchunk(buffer_slice(frame));
    bool is_deflate = stream->client.encoding == ENCODING_DEFLATE;
    const struct coding coding = {.encoding = is_deflate ? ENCODING_DEFLATE : ENCODING_ZSTD};
    struct gzip_sum sum = {0};
    struct buffer block = BUFFER_INIT;

    frame->failed = compressor_append_block(compressor, coding, said, &block) < 0;
    if (!frame->failed && is_deflate) {
        gzip_sum_add(&sum, said);
        outbox_client_said(&stream->client, &sum);
    }
    if (!frame->failed) {
        buffer_clear(frame);
        frame_append_chunk(frame, buffer_slice(&block));
    }
    buffer_done(&block);
}

/* HTTP/1.0 has no chunks: what is in them goes out bare. */
void stream_say_frame(struct stream *stream, struct buffer *frame)
{
    if (stream->client.encoding != ENCODING_NONE && !websocket_of(stream) && frame->size > 0 &&
        !frame->failed)
        compress(stream, frame);
    if (frame->failed)
        stream_end(stream, STREAM_BROKEN);
    else if (frame->size > 0)
        stream_say(stream, stream->client.unchunked ? frame_unchunk(buffer_slice(frame))
                                                    : buffer_slice(frame));
    buffer_done(frame);
}

/* Where the client would go on. While nothing has been logged it is before everything, by the
 * lowest id that is taken for one. */
static struct sl_cursor cursor_of(const struct stream *stream)
{
    struct sl_cursor cursor =
        deliver_client_cursor(stream->streams->settings.deliver, &stream->client);

    if (cursor.id == 0)
        cursor.id = SL_MOMENT_ID_MIN;
    return cursor;
}

/* --- the beginning --- */

/* Many may have the same filter: it is kept once. */
static int join_filter(struct stream *stream)
{
    struct stream_request *request = &stream->request;
    struct sl_filter *own = request->filter;
    struct deliver *deliver = stream->streams->settings.deliver;
    int r;

    if (request->counts.bucket_ms)
        r = deliver_subscribe_counts(deliver, &stream->client, own, &request->counts,
                                     request->gather_ms);
    else
        r = deliver_subscribe(deliver, &stream->client, own, request->gather_ms);
    if (r < 0)
        return r;
    request->filter = sl_filter_ref(deliver_shared_filter(&stream->client));
    sl_filter_unref(own);
    return 0;
}

static int join_delivery(struct stream *stream)
{
    struct deliver *deliver = stream->streams->settings.deliver;
    const struct stream_request *request = &stream->request;

    switch (request->stream) {
    case STREAM_FILTER:
    case STREAM_SAMPLE:
    case STREAM_FIREHOSE:
        return join_filter(stream);
    case STREAM_COUNTS:
        if (request->counts.by != COUNT_BY_RULE)
            return join_filter(stream);
        return deliver_subscribe_counted_rules(deliver, &stream->client, &request->counts,
                                               request->gather_ms, &websocket_of(stream)->rules);
    case STREAM_HOME:
        return deliver_subscribe_home(deliver, &stream->client,
                                      sl_slice_str(request->token.subject), request->types,
                                      request->gather_ms);
    case STREAM_MANY:
        return deliver_subscribe_rules(deliver, &stream->client, request->gather_ms,
                                       &websocket_of(stream)->rules);
    case STREAM_PAST_COUNTS:
        break;
    }
    return -EINVAL;
}

/* The cursor behind which the stream begins. Behind a time means: from that time on. */
static struct sl_cursor beginning_of(const struct stream *stream)
{
    switch (stream->request.since) {
    case SINCE_CURSOR:
    case SINCE_TIME:
        return stream->request.since_cursor;
    default:
        return cursor_of(stream);
    }
}

/* Where it was is not known: all that has happened may have been missed, up to the newest event.
 * Where that is depends on the clock of Redis, and not on ours. */
static void say_gap_to_head(struct stream *stream)
{
    uint64_t head = deliver_cursor(stream->streams->settings.deliver).id;
    struct gap gap = {.to = head ? head : sl_id_first_at(clock_wall_ms()), .reason = GAP_RETENTION};
    struct event *event = gap_event(&gap, false);
    struct buffer frame = BUFFER_INIT;

    if (event)
        frame_append_message(&frame, stream->client.format, "gap", event->json);
    event_unref(event);
    stream_say_frame(stream, &frame);
}

/* Where a stream begins that was asked for without a cursor. An EventSource that loses it before
 * the first event comes back with this, and misses nothing. */
static void say_beginning(struct stream *stream)
{
    const struct sl_cursor cursor = beginning_of(stream);
    struct buffer frame = BUFFER_INIT;

    if (stream->client.format == FORMAT_SSE)
        frame_append_keepalive(&frame, FORMAT_SSE, &cursor);
    stream_say_frame(stream, &frame);
}

static void say_hello(struct stream *stream)
{
    struct buffer json = BUFFER_INIT, frame = BUFFER_INIT;
    struct sl_cursor cursor = beginning_of(stream);

    if (cursor.id == 0)
        cursor.id = SL_MOMENT_ID_MIN;
    hello_print(stream, &cursor, &json);
    frame_append_message(&frame, stream->client.format, "hello", buffer_slice(&json));
    frame.failed = frame.failed || json.failed;
    stream_say_frame(stream, &frame);
    buffer_done(&json);
}

static void say_unknown_user(void *owner, const char *id, const struct sl_filter_login *login)
{
    struct stream *stream = owner;
    struct buffer text = BUFFER_INIT, json = BUFFER_INIT, frame = BUFFER_INIT;

    if (stream->stage != STREAM_LIVE || stream->end != STREAM_GOES_ON)
        return;
    buffer_append_format(&text, "no user of this server has the login '%s'", login->text);
    buffer_append_str(&json, "{\"type\":\"warning\",\"code\":\"unknown_user\",\"message\":");
    buffer_append_json_string(&json, buffer_slice(&text));
    buffer_append_format(&json, ",\"param\":\"%s\"", login->param);
    if (id[0])
        buffer_append_format(&json, ",\"id\":\"%s\"", id);
    buffer_append_char(&json, '}');
    frame_append_message(&frame, stream->client.format, "warning", buffer_slice(&json));
    frame.failed = frame.failed || json.failed || text.failed;
    stream_say_frame(stream, &frame);
    buffer_done(&text);
    buffer_done(&json);
}

/* What its filter may not have meant, once: who comes back with a cursor was told. */
static void say_warnings(struct stream *stream)
{
    struct sl_filter_warnings *warnings = stream->request.warnings;
    size_t count = warnings && stream->request.since != SINCE_CURSOR ? warnings->count : 0;

    for (size_t i = 0; i < count; i++) {
        struct buffer json = BUFFER_INIT, frame = BUFFER_INIT;

        buffer_append_str(&json, "{\"type\":\"warning\",");
        filter_json_append_warning(&warnings->list[i], &json);
        buffer_append_char(&json, '}');
        frame_append_message(&frame, stream->client.format, "warning", buffer_slice(&json));
        frame.failed = frame.failed || json.failed;
        stream_say_frame(stream, &frame);
        buffer_done(&json);
    }
    if (warnings && stream->request.since != SINCE_CURSOR)
        user_questions_add(&stream->user_questions, SL_SLICE_NONE, warnings);
    mem_free(warnings);
    stream->request.warnings = NULL;
}

static void say_first(struct stream *stream)
{
    if (stream->request.hello)
        say_hello(stream);
    if ((stream->request.since == SINCE_NOW && !stream->request.last) ||
        (stream->request.since == SINCE_TIME && stream->request.counts.bucket_ms))
        say_beginning(stream);
    else if (stream->request.since == SINCE_UNUSABLE)
        say_gap_to_head(stream);
}

/* Then deletions are what it asks for. */
static bool takes_no_posts(const struct stream_request *request)
{
    return request->stream != STREAM_MANY && !(request->types & 1u << SL_EVENT_POST);
}

static int resume(struct stream *stream)
{
    struct deliver *deliver = stream->streams->settings.deliver;
    enum since_kind since = stream->request.since;

    if (stream->request.last)
        return deliver_begin_last(deliver, &stream->client, stream->request.last,
                                  takes_no_posts(&stream->request));
    if (since != SINCE_CURSOR && since != SINCE_TIME && !stream->request.counts.bucket_ms)
        return 0;
    return deliver_resume(deliver, &stream->client, &stream->request.since_cursor);
}

/* The answer and the first frame leave together. */
static int begin(struct stream *stream, const struct http_head *head, struct sl_slice headers)
{
    bool corks = !stream->wire.is_blocked;
    int r;

    if (corks)
        wire_cork(&stream->wire);
    r = stream->protocol->open(stream, head, headers);
    if (r == 0)
        r = join_delivery(stream);
    if (r == 0) {
        say_first(stream);
        say_warnings(stream);
    }
    if (corks && wire_uncork(&stream->wire) < 0)
        r = -EPIPE;
    return r == 0 ? resume(stream) : r;
}

static void arm(struct stream *stream);
static void run_turn_end(struct turn_task *task);

void stream_start(struct stream *stream, const struct http_head *head, struct sl_slice headers)
{
    struct streams *streams = stream->streams;
    struct client *client = &stream->client;

    client->transport = &transport;
    client->format = stream->request.format;
    client->until = stream->request.until;
    client->encoding = stream->request.encoding;
    client->window_bits = stream->request.window_bits;
    client->says_cursors = stream->request.cursors && client->format != FORMAT_SSE;
    client->fields = stream->request.fields;
    client->last_sent_ms = stream->opened_ms = now_of(stream);
    stream->turn_end.run = run_turn_end;
    user_questions_init(&stream->user_questions, streams->settings.user_checks, say_unknown_user,
                        stream);
    uv_timer_init(streams->settings.loop, &stream->timer);
    stream->timer.data = stream;
    list_append(&streams->list, &stream->node);
    streams->by_ticket[stream->ticket] = stream;
    metric_add(metrics_of(stream), METRIC_STREAMS, 1);
    metric_add(metrics_of(stream), streams_by_kind(&stream->request), 1);
    metric_add(metrics_of(stream), METRIC_STREAMS_OPENED, 1);
    if (begin(stream, head, headers) < 0)
        stream_end(stream, STREAM_BROKEN);
    else if (streams->is_draining)
        stream_evict(stream, DISCONNECT_DRAINING);
    arm(stream);
}

/* --- keep-alive, token, deadlines: one timer --- */

static uint64_t keepalive_ms(const struct stream *stream)
{
    return stream->streams->settings.front->keepalive_ms;
}

static uint64_t token_left_ms(const struct stream *stream)
{
    uint64_t now = clock_wall_ms(), expires = stream->request.token.expires_ms;

    if (expires == 0)
        return UINT64_MAX;
    return expires > now ? expires - now : 0;
}

/* Until what happened up to `until` has arrived, and been sent. Who catches up comes to its end by
 * itself. */
static uint64_t until_left_ms(const struct stream *stream)
{
    uint64_t until = stream->request.until, now = clock_wall_ms();
    uint64_t end = sl_id_time_ms(until) + CLIENT_UNTIL_GRACE_MS;
    bool is_told;

    if (!until || (end <= now && stream->client.catcher))
        return UINT64_MAX;
    if (end > now)
        return end - now;
    is_told = !stream->request.counts.bucket_ms || cursor_of(stream).id >= until;
    return is_told && deliver_client_is_served(&stream->client) ? 0 : UNTIL_RETRY_MS;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void arm(struct stream *stream)
{
    uint64_t now = now_of(stream), quiet = now - stream->client.last_sent_ms;
    uint64_t wait = keepalive_ms(stream) > quiet ? keepalive_ms(stream) - quiet : 0;

    if (stream->stage == STREAM_LIVE)
        wait = lesser(wait, lesser(token_left_ms(stream), until_left_ms(stream)));
    else
        wait = stream->deadline_ms > now ? stream->deadline_ms - now : 0;
    uv_timer_start(&stream->timer, on_timer, wait, 0);
}

/* Only a client that has been sent everything: others are busy, and their cursor is older. */
static void keep_alive(struct stream *stream)
{
    struct websocket *websocket = websocket_of(stream);
    struct client *client = &stream->client;
    const struct sl_cursor cursor = cursor_of(stream);
    struct buffer frame = BUFFER_INIT;

    client->last_sent_ms = now_of(stream);
    if (stream->wire.is_blocked || !deliver_client_is_served(client))
        return;
    if (deliver_keep_alive(client, &cursor))
        return;
    if (websocket && websocket->pinged_ms) {
        stream_end(stream, STREAM_BROKEN);
        return;
    }
    if (websocket)
        websocket->pinged_ms = now_of(stream);
    frame_append_keepalive(&frame, client->format, &cursor);
    stream_say_frame(stream, &frame);
    if (client->says_cursors) {
        frame_append_cursor(&frame, client->format, &cursor);
        stream_say_frame(stream, &frame);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct stream *stream = timer->data;

    if (stream->stage != STREAM_LIVE) {
        stream_end(stream, STREAM_BROKEN);
        return;
    }
    if (stream->end != STREAM_GOES_ON)
        return; /* it ends with this turn, and delivery may have forgotten what it is owed */
    if (token_left_ms(stream) == 0) {
        stream_evict(stream, DISCONNECT_TOKEN_EXPIRED);
        return;
    }
    if (until_left_ms(stream) == 0) {
        stream_evict(stream, DISCONNECT_COMPLETE);
        return;
    }
    if (now_of(stream) - stream->client.last_sent_ms >= keepalive_ms(stream))
        keep_alive(stream);
    if (stream->end == STREAM_GOES_ON)
        arm(stream);
}

/* --- the end --- */

void stream_end(struct stream *stream, enum stream_end end)
{
    if (stream->stage == STREAM_ENDED || end <= stream->end)
        return;
    stream->end = (uint8_t)end;
    turn_schedule(stream->streams->settings.turn, &stream->turn_end);
}

void stream_evict(struct stream *stream, enum disconnect_reason reason)
{
    if (stream->end != STREAM_GOES_ON || stream->stage != STREAM_LIVE)
        return;
    stream->disconnect_reason = (uint8_t)reason;
    stream->is_evicted = true;
    stream->disconnect_cursor = cursor_of(stream);
    if (reason == DISCONNECT_COMPLETE)
        sl_cursor_move(&stream->disconnect_cursor, stream->request.until);
    deliver_suspend(&stream->client); /* nothing may go beyond this cursor */
    stream_end(stream, STREAM_EVICTED);
}

void stream_drain(struct stream *stream, bool hurries)
{
    if (stream->stage == STREAM_LIVE && stream->end == STREAM_GOES_ON &&
        (hurries || deliver_client_is_served(&stream->client)))
        stream_evict(stream, DISCONNECT_DRAINING);
}

void stream_leave_delivery(struct stream *stream)
{
    struct websocket *websocket = websocket_of(stream);
    struct stream_request *request = &stream->request;

    if (websocket && websocket->rules) {
        stream->left_filters = rule_set_count(websocket->rules);
        for (size_t i = 0; i < stream->left_filters; i++)
            stream->left_filter_bytes +=
                sl_filter_key(rule_set_at(websocket->rules, i)->filter).size;
        websocket->rules = NULL;
    } else if (request->filter) {
        stream->left_filters = 1;
        stream->left_filter_bytes = sl_filter_key(request->filter).size;
        sl_filter_unref(request->filter);
        request->filter = NULL;
    }
    deliver_leave(&stream->client);
    stream_filters_settle(stream->streams, &request->token, 0, &stream->filters);
}

void stream_leave(struct stream *stream, uint64_t within_ms)
{
    stream->stage = STREAM_LEAVING;
    stream->deadline_ms = now_of(stream) + within_ms;
    arm(stream);
    turn_schedule(stream->streams->settings.turn, &stream->turn_end);
}

/* The message that says why; whatever the socket does not take is held. */
static void take_leave(struct stream *stream)
{
    struct streams *streams = stream->streams;
    const struct disconnect_row *row = disconnect_row(stream->disconnect_reason);
    struct buffer json = BUFFER_INIT, frame = BUFFER_INIT;
    uint32_t retry_ms = 0;

    if (row->come_back)
        retry_ms = RETRY_MIN_MS + (uint32_t)(stable_hash(streams->random++) % RETRY_SPREAD_MS);
    stream_leave_delivery(stream);
    metric_add(metrics_of(stream), metric_at(METRIC_DISCONNECTS, stream->disconnect_reason), 1);
    if (retry_ms) {
        frame_append_retry(&frame, stream->client.format, retry_ms);
        stream_say_frame(stream, &frame);
    }
    if (stream->disconnect_reason == DISCONNECT_COMPLETE && stream->client.format == FORMAT_SSE) {
        /* An EventSource comes back all the same: with this it is told that there is no more. */
        frame_append_keepalive(&frame, FORMAT_SSE, &stream->disconnect_cursor);
        stream_say_frame(stream, &frame);
    }
    disconnect_print(stream->disconnect_reason, &stream->disconnect_cursor, retry_ms, &json);
    frame_append_message(&frame, stream->client.format, "disconnect", buffer_slice(&json));
    stream_say_frame(stream, &frame);
    stream->protocol->say_end(stream, row);
    buffer_done(&json);
    stream_leave(stream, stream->disconnect_reason == DISCONNECT_TOO_SLOW ? LEAVING_SLOWLY_MS
                                                                          : STREAM_LEAVING_MS);
}

static void begin_close(struct stream *stream)
{
    stream->stage = STREAM_CLOSING;
    stream->deadline_ms = now_of(stream) + CLOSING_MS;
    arm(stream);
    stream->protocol->begin_close(stream);
}

/* One line for a stream's whole life: who, how, what for (by size: what was asked for is the
 * client's affair), how long, how much, why it ended. */
static void log_end(const struct stream *stream)
{
    const struct stream_request *request = &stream->request;
    char subject[LOG_QUOTE_SIZE];
    const char *why = "client";

    if (stream->is_evicted && stream->stage != STREAM_LIVE)
        why = disconnect_row(stream->disconnect_reason)->code;
    else if (stream->end == STREAM_BROKEN && stream->stage == STREAM_LIVE)
        why = "broken";
    log_info("stream_end",
             "connection=\"%016" PRIx64
             "\" subject=%s stream=%s transport=%s filters=%zu filter_bytes=%zu seconds=%.1f "
             "events=%" PRIu64 " bytes=%" PRIu64 " why=%s",
             stream->id, log_quote(sl_slice_str(request->token.subject), subject),
             stream_kind_name(request->stream), stream_format_name(request->format),
             stream->left_filters, stream->left_filter_bytes,
             (double)(now_of(stream) - stream->opened_ms) / 1000, stream->client.sent_events,
             stream->client.sent_bytes, why);
}

static void release(uv_handle_t *timer)
{
    struct stream *stream = timer->data;

    stream->protocol->done(stream);
    mem_free(stream);
}

static void close_now(struct stream *stream)
{
    struct streams *streams = stream->streams;

    if (stream->end == STREAM_BROKEN && stream->stage != STREAM_CLOSING)
        metric_add(metrics_of(stream), METRIC_BROKEN, 1);
    user_questions_forget(&stream->user_questions);
    stream_leave_delivery(stream);
    log_end(stream);
    wire_close(&stream->wire);
    stream_memory_forget(stream);
    metric_sub(metrics_of(stream), METRIC_CONNECTIONS, 1);
    metric_sub(metrics_of(stream), METRIC_STREAMS, 1);
    metric_sub(metrics_of(stream), streams_by_kind(&stream->request), 1);
    streams->by_ticket[stream->ticket] = NULL;
    admission_leave(streams->settings.admission, stream->ticket);
    stream_request_done(&stream->request);
    stream->stage = STREAM_ENDED;
    list_remove(&streams->list, &stream->node);
    uv_close((uv_handle_t *)&stream->timer, release);
}

/* Who does not read cannot be told. */
static void give_way(struct stream *stream)
{
    stream->gives_way = false;
    if (stream->wire.held.size > HTTP_SMALL_BODY) {
        stream_end(stream, STREAM_BROKEN);
        return;
    }
    stream->protocol->stop_reading(stream);
    stream_evict(stream, DISCONNECT_BUSY);
}

static void run_turn_end(struct turn_task *task)
{
    struct stream *stream = LIST_OWNER(task, struct stream, turn_end);

    if (stream->gives_way) {
        give_way(stream);
        turn_cancel(stream->streams->settings.turn, task); /* it is running */
    }
    if (stream->end >= STREAM_PEER_LEFT)
        close_now(stream);
    else if (stream->stage == STREAM_LIVE && stream->end == STREAM_EVICTED)
        take_leave(stream);
    else if (stream->stage == STREAM_LEAVING && !stream->wire.is_blocked)
        begin_close(stream);
}

/* --- what the wire says --- */

static void on_received(struct wire *wire, char *bytes, size_t size)
{
    struct stream *stream = LIST_OWNER(wire, struct stream, wire);

    stream->protocol->received(stream, bytes, size);
    stream_memory_count(stream);
}

static void on_writable(struct wire *wire)
{
    struct stream *stream = LIST_OWNER(wire, struct stream, wire);

    stream_memory_count(stream);
    if (stream->stage == STREAM_LEAVING) {
        turn_schedule(stream->streams->settings.turn, &stream->turn_end);
        return;
    }
    if (stream->stage != STREAM_LIVE || stream->end != STREAM_GOES_ON)
        return;
    stream->protocol->writable(stream);
    deliver_client_writable(&stream->client);
}

static void on_closed(struct wire *wire)
{
    struct stream *stream = LIST_OWNER(wire, struct stream, wire);

    stream_leave_delivery(stream);
    stream_end(stream, STREAM_PEER_LEFT);
}

const struct wire_callbacks stream_wire_callbacks = {on_received, on_writable, on_closed};
