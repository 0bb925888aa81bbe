/* stream.c - a stream from its beginning to its end.
 *
 * Each stream has one timer, for whatever is due next: keep-alive, the end of its token, the
 * deadline for leaving. A stream that ends is sent the reason after everything that was sent
 * before, and is given time to read it. Then its connection is closed properly, and ends when the
 * peer closes it, or at a second deadline. A stream that was evicted for slowness gets more time,
 * because megabytes may precede the message.
 *
 * Delivery sends the events, stream_say.c all other messages. */
#include "gateway/streams/stream.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/stable_hash.h"
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/frame.h"
#include "gateway/front/dialect.h"
#include "gateway/streams/kept_rules.h"
#include "gateway/streams/renewal.h"

enum {
    STUCK_KEEPALIVES = 3,      /* for a socket without room, after an opened stream was too slow */
    LEAVING_SLOWLY_MS = 60000, /* for slow clients, with megabytes before the message */
    CLOSING_MS = 1000,         /* for closing, after leaving */
    RETRY_MIN_MS = 500,
    RETRY_SPREAD_MS = 4500,
    STAY_AWAY_MS = 86400000 /* a day, because an EventSource always reconnects */
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

/* --- beginning --- */

/* The response and the first frame are sent together. */
static int begin(struct stream *stream, const struct http_head *head, struct sl_slice headers)
{
    bool corks = !stream->wire.is_blocked;
    int r;

    if (corks)
        wire_cork(&stream->wire);
    r = stream->protocol->open(stream, head, headers);
    if (r == 0)
        r = channel_join(&stream->own);
    if (r == 0)
        channel_say_first(&stream->own);
    if (corks && wire_uncork(&stream->wire) < 0)
        r = -EPIPE;
    return r == 0 ? channel_resume(&stream->own) : r;
}

static void run_turn_end(struct turn_task *task);

void stream_start(struct stream *stream, const struct http_head *head, struct sl_slice headers)
{
    struct streams *streams = stream->streams;

    stream->turn_end.run = run_turn_end;
    uv_timer_init(streams->settings.loop, &stream->timer);
    stream->timer.data = stream;
    list_append(&streams->list, &stream->node);
    streams->by_ticket[stream->ticket] = stream;
    stream_use_begin(stream);
    metric_add(metrics_of(stream), METRIC_STREAMS, 1);
    metric_add(metrics_of(stream), METRIC_STREAMS_OPENED, 1);
    stream_audit_open(&stream->own);
    if (begin(stream, head, headers) < 0)
        stream_end(stream, STREAM_BROKEN);
    else if (token_is_revoked(streams->settings.front->policy, stream_token(stream),
                              clock_wall_ms()))
        stream_evict(stream,
                     DISCONNECT_TOKEN_REVOKED); /* it may have been revoked during the request */
    else if (streams->is_draining)
        stream_evict(stream, DISCONNECT_DRAINING);
    stream_arm(stream);
}

/* --- the timer: keep-alive, token, deadlines --- */

static uint64_t keepalive_ms(const struct stream *stream)
{
    uint32_t ours = stream->streams->settings.front->keepalive_ms;
    const struct dialect *dialect = stream->own.request.dialect;

    if (dialect && dialect->max_keepalive_ms && dialect->max_keepalive_ms < ours)
        return dialect->max_keepalive_ms;
    return ours;
}

static uint64_t token_left_ms(const struct stream *stream)
{
    uint64_t now = clock_wall_ms(), expires = stream_token(stream)->expires_ms;

    if (expires == 0)
        return UINT64_MAX;
    return expires > now ? expires - now : 0;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static struct channel *channel_at(struct list_node *node)
{
    return LIST_OWNER(node, struct channel, node);
}

static uint64_t quiet_ms(const struct stream *stream, const struct channel *channel)
{
    return now_of(stream) - channel->client.last_sent_ms;
}

/* The time in which nothing has been sent on the connection. */
static uint64_t all_quiet_ms(const struct stream *stream)
{
    uint64_t quiet = UINT64_MAX;

    LIST_EACH(&stream->channels, node)
    quiet = lesser(quiet, quiet_ms(stream, channel_at(node)));
    return quiet;
}

static bool is_served(const struct stream *stream)
{
    LIST_EACH(&stream->channels, node)
    {
        if (!deliver_client_is_served(&channel_at(node)->client))
            return false;
    }
    return true;
}

static uint64_t keepalive_left_ms(const struct stream *stream, uint64_t quiet)
{
    return keepalive_ms(stream) > quiet ? keepalive_ms(stream) - quiet : 0;
}

static uint64_t channel_left_ms(const struct stream *stream, const struct channel *channel)
{
    uint64_t wait = channel_until_left_ms(channel);

    if (channel->client.says_cursors)
        wait = lesser(wait, keepalive_left_ms(stream, quiet_ms(stream, channel)));
    return wait;
}

static uint64_t stuck_left_ms(const struct stream *stream)
{
    uint64_t now = now_of(stream);

    if (!stream->stuck_ms)
        return UINT64_MAX;
    return stream->stuck_ms > now ? stream->stuck_ms - now : 0;
}

void stream_arm(struct stream *stream)
{
    uint64_t now = now_of(stream), wait = stream->deadline_ms > now ? stream->deadline_ms - now : 0;

    if (stream->stage == STREAM_LIVE) {
        wait = lesser(token_left_ms(stream), keepalive_left_ms(stream, all_quiet_ms(stream)));
        wait = lesser(wait, stream_token_warning_left_ms(stream));
        wait = lesser(wait, stuck_left_ms(stream));
        wait = lesser(wait, stream->protocol->pause_left_ms(stream));
        LIST_EACH(&stream->channels, node)
        wait = lesser(wait, channel_left_ms(stream, channel_at(node)));
    }
    uv_timer_start(&stream->timer, on_timer, wait, 0);
}

/* Only for clients that have been sent everything: others are busy, and their cursor is older. */
static void keep_alive(struct stream *stream)
{
    struct websocket *websocket = websocket_of(stream);
    struct client *client = &stream->own.client;
    const struct sl_cursor cursor = channel_cursor(&stream->own);
    struct buffer frame = BUFFER_INIT;

    client->last_sent_ms = now_of(stream);
    if (stream->wire.is_blocked || !is_served(stream) || deliver_keep_alive(client, &cursor))
        return;
    if (websocket && websocket->pinged_ms) {
        stream_end(stream, STREAM_BROKEN);
        return;
    }
    if (websocket)
        websocket->pinged_ms = now_of(stream);
    if (stream->own.request.dialect && stream->own.request.dialect->keepalive && !websocket)
        frame_append_chunk(&frame, sl_slice_str(stream->own.request.dialect->keepalive));
    else
        frame_append_keepalive(&frame, client->format, &cursor);
    stream_say_frame(stream, &frame);
    if (client->says_cursors)
        channel_say_cursor(&stream->own);
}

/* For each channel that is quiet, even if others are not. */
static void say_cursors(struct stream *stream)
{
    LIST_EACH(&stream->channels, node)
    {
        struct channel *channel = channel_at(node);
        struct client *client = &channel->client;

        if (!client->says_cursors || quiet_ms(stream, channel) < keepalive_ms(stream))
            continue;
        client->last_sent_ms = now_of(stream);
        if (!stream->wire.is_blocked && deliver_client_is_served(client))
            channel_say_cursor(channel);
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
        return; /* it ends with this turn, and may have left delivery */
    if (token_left_ms(stream) == 0)
        stream_evict(stream, DISCONNECT_TOKEN_EXPIRED);
    if (stuck_left_ms(stream) == 0)
        stream_evict(stream, DISCONNECT_TOO_SLOW);
    LIST_EACH(&stream->channels, node)
    {
        if (channel_until_left_ms(channel_at(node)) == 0)
            channel_evict(channel_at(node), DISCONNECT_COMPLETE);
    }
    if (stream_goes_on(stream) && stream->protocol->pause_left_ms(stream) == 0)
        stream->protocol->read_on(stream);
    if (!stream_goes_on(stream))
        return;
    if (stream_token_warning_left_ms(stream) == 0)
        stream_warn_of_token(stream);
    if (!stream->wire.is_blocked)
        stream_say_undelivered(stream);
    if (all_quiet_ms(stream) >= keepalive_ms(stream))
        keep_alive(stream);
    say_cursors(stream);
    if (stream_goes_on(stream))
        stream_arm(stream);
}

/* --- end --- */

void stream_drain(struct stream *stream, bool hurries)
{
    if (stream_goes_on(stream) && (hurries || is_served(stream)))
        stream_evict(stream, DISCONNECT_DRAINING);
}

void stream_leave_delivery(struct stream *stream)
{
    LIST_EACH(&stream->channels, node)
    channel_leave_delivery(channel_at(node));
}

static void log_end(const struct channel *channel, const char *why)
{
    channel_log_end(channel, why);
    stream_audit_end(channel, why, now_of(channel->stream) - channel->opened_ms);
}

void stream_close_channel(struct channel *channel, const char *why)
{
    stream_use_add(channel->stream);
    channel_leave_delivery(channel);
    log_end(channel, why);
    channel_done(channel);
    mem_free(channel);
}

void stream_leave(struct stream *stream, uint64_t within_ms)
{
    stream->stage = STREAM_LEAVING;
    stream->deadline_ms = now_of(stream) + within_ms;
    stream_arm(stream);
    turn_schedule(stream->streams->settings.turn, &stream->turn_end);
}

/* Also counts the reason. 0: the client should not reconnect. */
static uint32_t choose_retry_ms(struct stream *stream, const struct channel *channel)
{
    const struct disconnect_row *row = disconnect_row(channel->disconnect_reason);

    metric_add(metrics_of(stream), metric_at(METRIC_DISCONNECTS, channel->disconnect_reason), 1);
    if (!row->come_back)
        return 0;
    if (channel->disconnect_reason == DISCONNECT_QUOTA)
        return stream_use_retry_ms(stable_hash(stream->streams->random++));
    return RETRY_MIN_MS + (uint32_t)(stable_hash(stream->streams->random++) % RETRY_SPREAD_MS);
}

static void note_stuck(struct stream *stream)
{
    if (!stream->wire.is_blocked)
        return;
    stream->stuck_ms = now_of(stream) + STUCK_KEEPALIVES * keepalive_ms(stream);
    if (stream->stage == STREAM_LIVE)
        stream_arm(stream);
}

/* Ends the opened streams that are evicted. */
static void end_opened(struct stream *stream)
{
    LIST_EACH(&stream->channels, node)
    {
        struct channel *channel = channel_at(node);

        if (!channel_is_opened(channel) || !channel->is_evicted)
            continue;
        if (channel->disconnect_reason == DISCONNECT_TOO_SLOW && !stream->stuck_ms)
            note_stuck(stream);
        channel_leave_delivery(channel);
        channel_say_disconnect(channel, choose_retry_ms(stream, channel));
        stream_close_channel(channel, disconnect_row(channel->disconnect_reason)->code);
    }
}

/* Tells an EventSource when to reconnect; dialects have no message for that. */
static void say_retry(struct stream *stream, uint32_t retry_ms)
{
    const struct channel *own = &stream->own;
    struct buffer frame = BUFFER_INIT;

    if (own->request.dialect)
        return;
    if (own->disconnect_reason != DISCONNECT_COMPLETE) /* it reconnects, and gets 204 */
        frame_append_retry(&frame, own->client.format, retry_ms ? retry_ms : STAY_AWAY_MS);
    else if (own->client.format == FORMAT_SSE)
        /* An EventSource reconnects even then; with this cursor it is told that there is nothing
         * more. */
        frame_append_keepalive(&frame, FORMAT_SSE, &own->disconnect_cursor);
    stream_say_frame(stream, &frame);
}

/* Sends the message with the reason; bytes that the socket does not accept are held. */
static void send_disconnect(struct stream *stream)
{
    const struct channel *own = &stream->own;
    uint32_t retry_ms = choose_retry_ms(stream, own);

    LIST_EACH(&stream->channels, node)
    channel_suspend(channel_at(node), own->disconnect_reason);
    stream_leave_delivery(stream);
    end_opened(stream);
    say_retry(stream, retry_ms);
    stream_say_undelivered(stream);
    channel_say_disconnect(&stream->own, retry_ms);
    stream->protocol->say_end(stream, disconnect_row(own->disconnect_reason));
    stream_leave(stream, own->disconnect_reason == DISCONNECT_TOO_SLOW ? LEAVING_SLOWLY_MS
                                                                       : STREAM_LEAVING_MS);
}

static void begin_close(struct stream *stream)
{
    stream->stage = STREAM_CLOSING;
    stream->deadline_ms = now_of(stream) + CLOSING_MS;
    stream_arm(stream);
    stream->protocol->begin_close(stream);
}

static const char *why_it_ended(const struct stream *stream)
{
    if (stream->own.is_evicted && stream->stage != STREAM_LIVE)
        return disconnect_row(stream->own.disconnect_reason)->code;
    if (stream->end == STREAM_BROKEN && stream->stage == STREAM_LIVE)
        return "broken";
    return "client";
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
    stream_leave_delivery(stream);
    LIST_EACH(&stream->channels, node)
    {
        if (channel_is_opened(channel_at(node)))
            stream_close_channel(channel_at(node), why_it_ended(stream));
    }
    log_end(&stream->own, why_it_ended(stream));
    wire_close(&stream->wire);
    stream_memory_forget(stream);
    metric_sub(metrics_of(stream), METRIC_CONNECTIONS, 1);
    metric_sub(metrics_of(stream), METRIC_STREAMS, 1);
    stream_use_add(stream);
    streams->by_ticket[stream->ticket] = NULL;
    admission_leave(streams->settings.admission, stream->ticket);
    stream_use_end(stream);
    channel_done(&stream->own);
    stream->stage = STREAM_ENDED;
    kept_rules_free(stream->kept_rules);
    stream->kept_rules = NULL;
    list_remove(&streams->list, &stream->node);
    uv_close((uv_handle_t *)&stream->timer, release);
}

/* If it does not read, it is broken; nothing can be sent to it. */
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
        turn_cancel(stream->streams->settings.turn, task); /* it is running now */
    }
    if (stream->end >= STREAM_PEER_LEFT)
        close_now(stream);
    else if (stream->stage == STREAM_LIVE && stream->end == STREAM_EVICTED)
        send_disconnect(stream);
    else if (stream->stage == STREAM_LIVE)
        end_opened(stream);
    else if (stream->stage == STREAM_LEAVING && !stream->wire.is_blocked)
        begin_close(stream);
}

/* --- callbacks of the wire --- */

static void on_received(struct wire *wire, char *bytes, size_t size)
{
    struct stream *stream = LIST_OWNER(wire, struct stream, wire);

    stream->protocol->received(stream, bytes, size);
    stream_memory_count(stream);
}

/* The channel that fills the socket moves to the end of the list, so that no channel waits for ever
 * for one that always has data. */
static void send_in_turn(struct stream *stream)
{
    for (size_t left = stream->channels.count; left > 0 && !stream->wire.is_blocked; left--) {
        struct list_node *first = list_first(&stream->channels);

        list_remove(&stream->channels, first);
        list_append(&stream->channels, first);
        deliver_client_writable(&channel_at(first)->client);
    }
}

static void on_writable(struct wire *wire)
{
    struct stream *stream = LIST_OWNER(wire, struct stream, wire);

    stream_memory_count(stream);
    if (stream->stage == STREAM_LEAVING) {
        turn_schedule(stream->streams->settings.turn, &stream->turn_end);
        return;
    }
    if (!stream_goes_on(stream))
        return;
    stream->stuck_ms = 0;
    stream->protocol->writable(stream);
    send_in_turn(stream);
}

static void on_closed(struct wire *wire)
{
    struct stream *stream = LIST_OWNER(wire, struct stream, wire);

    stream_leave_delivery(stream);
    stream_end(stream, STREAM_PEER_LEFT);
}

const struct wire_callbacks stream_wire_callbacks = {on_received, on_writable, on_closed};
