#include "gateway/transport/connection.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "filters/filter.h"
#include "gateway/api/api.h"
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/frame.h"
#include "gateway/delivery/outbox.h"
#include "gateway/delivery/rule_set.h"
#include "gateway/intake/gap.h"
#include "gateway/transport/respond.h"
#include "gateway/transport/server_private.h"
#include "src/model/id.h"

enum {
    LEAVING_MS = 5000,         /* to read the farewell */
    LEAVING_SLOWLY_MS = 60000, /* the same for the slow, who find it behind megabytes */
    CLOSING_MS = 1000,         /* to close, or answer the close, after that */
    MAX_HELD_BYTES = 1 << 20,  /* of our own messages to a client that does not read */
    MAX_HELD_COUNT = 256,      /* libwebsockets gives up at 1,023 */
    RETRY_MIN_MS = 500,
    RETRY_SPREAD_MS = 4500
};

static void on_timer(uv_timer_t *timer);

static uint64_t now_of(const struct connection *connection)
{
    return uv_now(connection->server->settings.loop);
}

struct connection *connection_new(struct server *server, struct lws *wsi)
{
    struct connection *connection = mem_zalloc(sizeof(*connection));

    if (!connection)
        return NULL;
    connection->server = server;
    connection->door = server->entered;
    connection->wsi = wsi;
    connection->fd = lws_get_socket_fd(wsi);
    connection->is_tls = lws_is_ssl(wsi);
    connection->opened_ms = uv_now(server->settings.loop);
    uv_timer_init(server->settings.loop, &connection->timer);
    connection->timer.data = connection;
    list_append(&server->connections, &connection->node);
    metric_add(server->settings.metrics, METRIC_CONNECTIONS, 1);
    metric_add(server->settings.metrics, METRIC_CONNECTIONS_ACCEPTED, 1);
    return connection;
}

static void release(uv_handle_t *timer)
{
    struct connection *connection = timer->data;

    buffer_done(&connection->incoming);
    buffer_done(&connection->held);
    buffer_done(&connection->response_form.cors);
    mem_free(connection);
}

static bool is_stream(enum connection_stage stage)
{
    return stage == CONNECTION_STREAM || stage == CONNECTION_WEBSOCKET;
}

static enum metric streams_by_kind(const struct stream_request *request)
{
    static_assert(STREAM_MANY == 4 && WIRE_WEBSOCKET == 0, "the rows end with many over WebSocket");

    return metric_at(METRIC_STREAMS_BY, request->stream * WIRE_FORMAT_COUNT + request->wire);
}

/* One line for a stream's whole life: who, how, what for (by size: what was asked for is the
 * client's affair), how long, how much, why it ended. */
static void log_end(const struct connection *connection)
{
    const struct stream_request *request = &connection->request;
    size_t filters = request->filter != NULL ? 1 : connection->rule_count;
    size_t filter_bytes =
        request->filter ? sl_filter_key(request->filter).size : connection->rule_bytes;
    char subject[LOG_QUOTE_SIZE];
    const char *why =
        connection->stage != CONNECTION_STREAM && connection->stage != CONNECTION_WEBSOCKET
            ? farewell_row(connection->farewell)->code
        : connection->doom == DOOM_BROKEN ? "broken"
                                          : "client";

    log_info("stream_end",
             "subject=%s stream=%s transport=%s filters=%zu filter_bytes=%zu seconds=%.1f "
             "events=%" PRIu64 " bytes=%" PRIu64 " why=%s",
             log_quote(sl_slice_str(request->token.subject), subject),
             stream_kind_name(request->stream), wire_format_name(request->wire), filters,
             filter_bytes, (double)(now_of(connection) - connection->opened_ms) / 1000,
             connection->client.sent_events, connection->client.sent_bytes, why);
}

void connection_leave_delivery(struct connection *connection)
{
    struct rule_set *rules = connection->rules;

    connection->rules = NULL;
    if (rules)
        connection->rule_count = rule_set_count(rules);
    for (size_t i = 0; i < connection->rule_count && rules; i++)
        connection->rule_bytes += sl_filter_key(rule_set_at(rules, i)->filter).size;
    deliver_leave(&connection->client);
}

void connection_gone(struct connection *connection)
{
    struct server *server = connection->server;

    connection->wsi = NULL;
    connection->fd = -1;
    connection_leave_delivery(connection);
    if (connection->was_stream)
        log_end(connection);
    if (connection->api_request)
        api_abandon(connection->api_request);
    if (connection->was_stream) {
        metric_sub(server->settings.metrics, METRIC_STREAMS, 1);
        metric_sub(server->settings.metrics, streams_by_kind(&connection->request), 1);
    }
    if (connection->is_admitted) {
        server->by_ticket[connection->ticket] = NULL;
        admission_leave(server->settings.admission, connection->ticket);
    }
    if (connection->has_request)
        stream_request_done(&connection->request);
    connection->has_request = false;
    connection->stage = CONNECTION_GONE;
    if (list_contains(&connection->scheduled))
        list_remove(&server->scheduled, &connection->scheduled);
    list_remove(&server->connections, &connection->node);
    metric_sub(server->settings.metrics, METRIC_CONNECTIONS, 1);
    uv_close((uv_handle_t *)&connection->timer, release);
}

void connection_schedule(struct connection *connection)
{
    if (!list_contains(&connection->scheduled))
        list_append(&connection->server->scheduled, &connection->scheduled);
}

void connection_doom(struct connection *connection, enum doom doom)
{
    if (connection->stage == CONNECTION_GONE || doom <= connection->doom)
        return;
    connection->doom = doom;
    connection_schedule(connection);
}

/* Where the client would go on. While nothing has been logged it is before everything, by the
 * lowest id of all: 0 is no cursor. */
static uint64_t cursor_of(const struct connection *connection)
{
    uint64_t cursor =
        deliver_client_cursor(connection->server->settings.deliver, &connection->client);

    return cursor > 0 ? cursor : 1;
}

void connection_evict(struct connection *connection, enum farewell farewell)
{
    if (connection->doom != DOOM_NONE || !is_stream(connection->stage))
        return;
    connection->farewell = farewell;
    connection->farewell_cursor = cursor_of(connection);
    deliver_suspend(&connection->client); /* nothing may go beyond this cursor */
    connection_doom(connection, DOOM_FAREWELL);
}

void connection_drain(struct connection *connection)
{
    const struct server *server = connection->server;

    if (is_stream(connection->stage)) {
        if (server->hurries || deliver_client_is_served(&connection->client))
            connection_evict(connection, FAREWELL_DRAINING);
    } else if (connection->is_idle && !server->has_successor) {
        connection_doom(connection, DOOM_PEER_LEFT);
    }
}

static int join_delivery(struct connection *connection)
{
    struct deliver *deliver = connection->server->settings.deliver;
    const struct stream_request *request = &connection->request;

    switch (request->stream) {
    case STREAM_FILTER:
    case STREAM_SAMPLE:
    case STREAM_FIREHOSE:
        return deliver_subscribe(deliver, &connection->client, request->filter, request->gather_ms);
    case STREAM_HOME:
        return deliver_subscribe_home(deliver, &connection->client,
                                      sl_slice_str(request->token.subject), request->types,
                                      request->gather_ms);
    case STREAM_MANY:
        return deliver_subscribe_rules(deliver, &connection->client, request->gather_ms,
                                       &connection->rules);
    }
    return -EINVAL;
}

static void say_frame(struct connection *connection, struct buffer *frame);

/* Where it was is not known: all that has happened may have been missed. */
static void say_gap_to_now(struct connection *connection)
{
    struct gap gap = {.to = sl_id_first_at(clock_wall_ms()), .reason = GAP_RETENTION};
    struct event *event = gap_event(&gap);
    struct buffer frame = BUFFER_INIT;

    if (event)
        frame_append_message(&frame, connection->client.wire, "gap", event->json);
    event_unref(event);
    say_frame(connection, &frame);
    buffer_done(&frame);
}

/* Where a stream begins that was asked for without a cursor. An EventSource that loses it before
 * the first event comes back with this, and misses nothing. */
static void say_beginning(struct connection *connection)
{
    struct buffer frame = BUFFER_INIT;

    if (connection->client.wire == WIRE_SSE)
        frame_append_keepalive(&frame, WIRE_SSE, cursor_of(connection));
    say_frame(connection, &frame);
    buffer_done(&frame);
}

/* Behind a time means: from that time on. */
static int resume(struct connection *connection)
{
    const struct stream_request *request = &connection->request;
    struct deliver *deliver = connection->server->settings.deliver;
    uint64_t cursor = request->since_value;

    switch (request->since) {
    case SINCE_NOW:
        say_beginning(connection);
        break;
    case SINCE_UNUSABLE:
        say_gap_to_now(connection);
        break;
    case SINCE_TIME:
        cursor = sl_id_first_at(request->since_value);
        return deliver_resume(deliver, &connection->client, cursor > 0 ? cursor - 1 : 0);
    case SINCE_ID:
        return deliver_resume(deliver, &connection->client, cursor);
    }
    return 0;
}

int connection_start_stream(struct connection *connection, enum connection_stage stage,
                            const struct transport *transport)
{
    struct client *client = &connection->client;

    client->transport = transport;
    client->wire = connection->request.wire;
    client->last_sent_ms = now_of(connection);
    connection->stage = stage;
    connection->was_stream = true;
    connection->deadline_ms = 0;
    metric_add(connection->server->settings.metrics, METRIC_STREAMS, 1);
    metric_add(connection->server->settings.metrics, streams_by_kind(&connection->request), 1);
    metric_add(connection->server->settings.metrics, METRIC_STREAMS_OPENED, 1);
    if (join_delivery(connection) < 0 || resume(connection) < 0)
        return -ENOMEM;
    connection_arm(connection);
    if (connection->server->is_draining)
        connection_evict(connection, FAREWELL_DRAINING);
    return 0;
}

void connection_say(struct connection *connection, struct sl_slice frames)
{
    struct client *client = &connection->client;
    struct iovec piece = {(char *)frames.data, frames.size};
    ssize_t sent = 0;

    if (connection->doom >= DOOM_PEER_LEFT || !connection->wsi || frames.size == 0)
        return;
    if (!client->transport->is_blocked(client)) {
        sent = client->transport->send(client, &piece, 1);
        if (sent < 0) {
            connection_doom(connection, DOOM_BROKEN);
            return;
        }
    }
    client->last_sent_ms = now_of(connection);
    client->sent_bytes += frames.size;
    piece = (struct iovec){(char *)frames.data + sent, frames.size - (size_t)sent};
    if (piece.iov_len > 0 && client->transport->hold(client, &piece, 1) < 0)
        connection_doom(connection, DOOM_BROKEN);
    if (connection->held.size > MAX_HELD_BYTES || connection->held_count > MAX_HELD_COUNT)
        connection_doom(connection, DOOM_BROKEN);
}

/* --- keep-alive, token, deadlines: one timer --- */

static uint64_t keepalive_ms(const struct connection *connection)
{
    return connection->server->settings.config->keepalive_ms;
}

static uint64_t token_left_ms(const struct connection *connection)
{
    uint64_t now = clock_wall_ms(), expires = connection->request.token.expires_ms;

    if (expires == 0)
        return UINT64_MAX;
    return expires > now ? expires - now : 0;
}

void connection_arm(struct connection *connection)
{
    uint64_t now = now_of(connection);
    uint64_t wait = UINT64_MAX;

    if (is_stream(connection->stage)) {
        uint64_t quiet = now - connection->client.last_sent_ms;

        wait = quiet < keepalive_ms(connection) ? keepalive_ms(connection) - quiet : 0;
        if (token_left_ms(connection) < wait)
            wait = token_left_ms(connection);
    } else if (connection->deadline_ms) {
        wait = connection->deadline_ms > now ? connection->deadline_ms - now : 0;
    }
    if (wait == UINT64_MAX)
        uv_timer_stop(&connection->timer);
    else
        uv_timer_start(&connection->timer, on_timer, wait, 0);
}

static void append_cursor(const struct connection *connection, uint64_t cursor,
                          struct buffer *frames)
{
    char json[64];
    int length =
        snprintf(json, sizeof(json), "{\"type\":\"cursor\",\"id\":\"%" PRIu64 "\"}", cursor);

    frame_append_message(frames, connection->client.wire, "cursor", sl_slice(json, (size_t)length));
}

/* HTTP/1.0 has no chunks: what is in them goes out bare. */
static struct sl_slice as_sent(const struct connection *connection, const struct buffer *frames)
{
    return connection->client.unchunked ? frame_unchunk(buffer_slice(frames))
                                        : buffer_slice(frames);
}

static void say_frame(struct connection *connection, struct buffer *frame)
{
    if (!frame->failed && frame->size > 0)
        connection_say(connection, as_sent(connection, frame));
    buffer_clear(frame);
}

/* Only a client that has been sent everything: others are busy, and their cursor is older. */
static void keep_alive(struct connection *connection)
{
    struct client *client = &connection->client;
    uint64_t cursor = cursor_of(connection);
    struct buffer frame = BUFFER_INIT;

    client->last_sent_ms = now_of(connection);
    if (client->transport->is_blocked(client) || !deliver_client_is_served(client))
        return;
    if (connection->pinged_ms) {
        connection_doom(connection, DOOM_BROKEN);
        return;
    }
    if (client->wire == WIRE_WEBSOCKET)
        connection->pinged_ms = now_of(connection);
    frame_append_keepalive(&frame, client->wire, cursor);
    say_frame(connection, &frame);
    if (connection->request.cursors && client->wire != WIRE_SSE) {
        append_cursor(connection, cursor, &frame);
        say_frame(connection, &frame);
    }
    buffer_done(&frame);
}

static void on_timer(uv_timer_t *timer)
{
    struct connection *connection = timer->data;
    uint64_t now = now_of(connection);

    if (connection->doom != DOOM_NONE && is_stream(connection->stage))
        return; /* it ends with this turn, and delivery may have forgotten what it is owed */
    if (!is_stream(connection->stage)) {
        if (connection->deadline_ms && now >= connection->deadline_ms)
            connection_doom(connection, DOOM_BROKEN);
    } else if (token_left_ms(connection) == 0) {
        connection_evict(connection, FAREWELL_TOKEN_EXPIRED);
        return;
    } else if (now - connection->client.last_sent_ms >= keepalive_ms(connection)) {
        keep_alive(connection);
    }
    if (connection->doom == DOOM_NONE)
        connection_arm(connection);
}

/* --- taking leave --- */

void connection_begin_close(struct connection *connection)
{
    connection->stage = CONNECTION_LEFT;
    connection->deadline_ms = now_of(connection) + CLOSING_MS;
    connection_arm(connection);
    if (connection->client.wire == WIRE_WEBSOCKET)
        websocket_begin_close(connection);
    else
        http_stream_begin_close(connection);
}

static uint64_t leaving_ms(enum farewell farewell)
{
    return farewell == FAREWELL_TOO_SLOW ? LEAVING_SLOWLY_MS : LEAVING_MS;
}

/* The message, whatever the socket does not take held; then the end, at the latest at the
 * deadline. */
void connection_take_leave(struct connection *connection)
{
    struct server *server = connection->server;
    const struct farewell_row *row = farewell_row(connection->farewell);
    uint32_t retry_ms =
        row->come_back ? RETRY_MIN_MS + (uint32_t)(server_random(server) % RETRY_SPREAD_MS) : 0;
    struct buffer json = BUFFER_INIT, frame = BUFFER_INIT;

    connection_leave_delivery(connection);
    metric_add(server->settings.metrics, metric_at(METRIC_FAREWELLS, connection->farewell), 1);
    if (retry_ms) {
        frame_append_retry(&frame, connection->client.wire, retry_ms);
        say_frame(connection, &frame);
    }
    farewell_print(connection->farewell, connection->farewell_cursor, retry_ms, &json);
    frame_append_message(&frame, connection->client.wire, "disconnect", buffer_slice(&json));
    say_frame(connection, &frame);
    if (connection->client.wire != WIRE_WEBSOCKET && !connection->client.unchunked)
        connection_say(connection, SL_SLICE("0\r\n\r\n"));
    buffer_done(&json);
    buffer_done(&frame);

    connection->stage = CONNECTION_LEAVING;
    connection->deadline_ms = now_of(connection) + leaving_ms(connection->farewell);
    connection_arm(connection);
    if (!connection->client.transport->is_blocked(&connection->client))
        connection_begin_close(connection);
}

void connection_writable(struct connection *connection)
{
    if (connection->stage == CONNECTION_LEAVING) {
        connection_schedule(connection); /* libwebsockets may be calling: it must not close now */
        return;
    }
    if (connection->stage == CONNECTION_ANSWERING && !connection->api_request)
        respond_sent(connection);
    if (!is_stream(connection->stage))
        return;
    deliver_client_writable(&connection->client);
}
