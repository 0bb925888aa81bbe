/* http_stream.c - an endless response, written by ourselves.
 *
 * While libwebsockets 4.1 has an HTTP response under way it does not read, but it does not stop
 * watching for input either: one more byte from the client, or its half-close, makes the loop spin
 * (upstream issue 2455). So its reading is switched off for good when the stream begins. With that
 * it no longer notices a peer that has gone, nor when the socket has room again. Hence, for plain
 * sockets, a watcher of our own: one epoll set for all streams, edge-triggered, itself watched by
 * the loop; and all output is ours. libwebsockets writes nothing to such a socket after the head,
 * so nothing can get between our bytes.
 *
 * Over TLS the bytes must go through libwebsockets. It gets its reading back for as long as it
 * holds something unsent, because it would not go on writing otherwise. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "gateway/transport/connection.h"
#include "gateway/transport/frame.h"
#include "gateway/transport/respond.h"
#include "gateway/transport/server_private.h"

static const char *const content_types[WIRE_FORMAT_COUNT] = {
    [WIRE_NDJSON] = "application/x-ndjson",
    [WIRE_DELIMITED] = "application/x-ndjson",
    [WIRE_SSE] = "text/event-stream",
};

static void switch_rx(struct connection *connection, bool on)
{
    connection->rx_is_off = !on;
    lws_rx_flow_control(connection->wsi, LWS_RXFLOW_REASON_USER_BOOL |
                                             LWS_RXFLOW_REASON_FLAG_PROCESS_NOW |
                                             (on ? LWS_RXFLOW_REASON_APPLIES_ENABLE
                                                 : LWS_RXFLOW_REASON_APPLIES_DISABLE));
}

void http_stream_settle(struct connection *connection)
{
    switch_rx(connection, false);
}

/* --- plain sockets --- */

static ssize_t plain_send(struct client *client, const struct iovec *pieces, int count)
{
    struct msghdr message = {.msg_iov = (struct iovec *)pieces, .msg_iovlen = (size_t)count};
    ssize_t sent = sendmsg(connection_of(client)->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (sent >= 0)
        return sent;
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        return -errno;
    connection_of(client)->wants_writable = true; /* the edge will come */
    return 0;
}

static int plain_hold(struct client *client, const struct iovec *pieces, int count)
{
    struct connection *connection = connection_of(client);

    for (int i = 0; i < count; i++)
        buffer_append(&connection->held, pieces[i].iov_base, pieces[i].iov_len);
    connection->wants_writable = true;
    return connection->held.failed ? -ENOMEM : 0;
}

static void plain_writable(struct connection *connection)
{
    struct buffer *held = &connection->held;
    struct iovec piece = {held->data, held->size};
    ssize_t sent;

    connection->wants_writable = false;
    if (held->size > 0) {
        sent = plain_send(&connection->client, &piece, 1);
        if (sent < 0) {
            connection_doom(connection, DOOM_BROKEN);
            return;
        }
        buffer_consume(held, (size_t)sent);
        if (held->size > 0) {
            connection->wants_writable = true;
            if (connection->stage == CONNECTION_ANSWERING)
                respond_progress(connection);
            return;
        }
        buffer_done(held);
    }
    connection_writable(connection);
}

/* --- over TLS --- */

static ssize_t tls_send(struct client *client, const struct iovec *pieces, int count)
{
    struct connection *connection = connection_of(client);
    struct buffer *scratch = &connection->server->scratch;

    buffer_clear(scratch);
    for (int i = 0; i < count; i++)
        buffer_append(scratch, pieces[i].iov_base, pieces[i].iov_len);
    if (scratch->failed)
        return -ENOMEM;
    if (lws_write(connection->wsi, (unsigned char *)scratch->data, scratch->size, LWS_WRITE_HTTP) <
        0)
        return -EPIPE;
    if (lws_partial_buffered(connection->wsi)) {
        connection->held_count++;
        if (connection->rx_is_off)
            switch_rx(connection, true);
        lws_callback_on_writable(connection->wsi);
    }
    return (ssize_t)scratch->size;
}

void http_stream_on_writable(struct connection *connection)
{
    if (!connection->is_tls || lws_partial_buffered(connection->wsi))
        return;
    connection->held_count = 0;
    if (!connection->rx_is_off)
        switch_rx(connection, false);
    connection_writable(connection);
}

/* --- the table --- */

static ssize_t http_stream_send(struct client *client, const struct iovec *pieces, int count)
{
    return connection_of(client)->is_tls ? tls_send(client, pieces, count)
                                         : plain_send(client, pieces, count);
}

static int http_stream_hold(struct client *client, const struct iovec *pieces, int count)
{
    ssize_t r;

    if (!connection_of(client)->is_tls)
        return plain_hold(client, pieces, count);
    r = tls_send(client, pieces, count);
    return r < 0 ? (int)r : 0;
}

static bool http_stream_is_blocked(const struct client *client)
{
    const struct connection *connection = connection_of(client);

    return connection->is_tls ? lws_partial_buffered(connection->wsi) : connection->wants_writable;
}

static void http_stream_evict(struct client *client, enum farewell farewell)
{
    connection_evict(connection_of(client), farewell);
}

static void http_stream_broken(struct client *client)
{
    connection_doom(connection_of(client), DOOM_BROKEN);
}

const struct transport http_stream_transport = {
    .send = http_stream_send,
    .hold = http_stream_hold,
    .is_blocked = http_stream_is_blocked,
    .evict = http_stream_evict,
    .broken = http_stream_broken,
};

/* --- beginning and end --- */

int http_stream_watch(struct connection *connection, uint32_t events)
{
    struct epoll_event event = {.events = events | EPOLLET, .data.ptr = connection};

    if (epoll_ctl(connection->server->stream_watch_fd, EPOLL_CTL_ADD, connection->fd, &event) < 0)
        return -errno;
    return 0;
}

void http_stream_unwatch(struct connection *connection)
{
    epoll_ctl(connection->server->stream_watch_fd, EPOLL_CTL_DEL, connection->fd, NULL);
}

void http_stream_stop_reading(struct connection *connection)
{
    lws_set_timeout(connection->wsi, NO_PENDING_TIMEOUT, 0);
    if (connection->server->given_body) {
        connection->rx_is_off = true; /* as soon as the head has been taken */
        connection_schedule(connection);
    } else {
        switch_rx(connection, false);
    }
}

void http_stream_go_on_reading(struct connection *connection)
{
    switch_rx(connection, true);
}

static int send_head(struct connection *connection, bool is_http_1_0, struct sl_slice cors)
{
    struct buffer *head = &connection->server->scratch;

    buffer_clear(head);
    buffer_append_format(head,
                         "HTTP/1.%c 200 OK\r\n"
                         "Content-Type: %s\r\n"
                         "%s"
                         "Cache-Control: no-store, no-transform\r\n"
                         "X-Accel-Buffering: no\r\n"
                         "%.*s"
                         "\r\n",
                         is_http_1_0 ? '0' : '1', content_types[connection->request.wire],
                         is_http_1_0 ? "Connection: close\r\n" : "Transfer-Encoding: chunked\r\n",
                         SL_SLICE_ARG(cors));
    if (head->failed)
        return -ENOMEM;
    if (lws_write(connection->wsi, (unsigned char *)head->data, head->size,
                  LWS_WRITE_HTTP_HEADERS) < 0)
        return -EPIPE;
    /* A fresh socket always has room for a head; one that has not is not worth a special case. */
    return !connection->is_tls && lws_partial_buffered(connection->wsi) ? -EPIPE : 0;
}

int http_stream_open(struct connection *connection, bool is_http_1_0, struct sl_slice cors)
{
    int r;

    connection->client.unchunked = is_http_1_0;
    r = send_head(connection, is_http_1_0, cors);
    if (r < 0)
        return r;
    lws_http_headers_detach(connection->wsi);
    http_stream_stop_reading(connection);
    r = http_stream_watch(connection, EPOLLOUT | EPOLLRDHUP);
    if (r < 0)
        return r;
    return connection_start_stream(connection, CONNECTION_STREAM, &http_stream_transport);
}

/* A plain peer that has read everything closes, and the watcher sees it; over TLS libwebsockets
 * closes properly by itself. */
void http_stream_begin_close(struct connection *connection)
{
    if (connection->is_tls)
        connection_doom(connection, DOOM_BROKEN);
    else
        shutdown(connection->fd, SHUT_WR);
}

/* --- the watcher --- */

static void on_stream_events(struct connection *connection, uint32_t events)
{
    if (!connection->wsi)
        return; /* closed earlier in the same batch; the memory is still there */
    if (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) {
        connection_doom(connection, DOOM_PEER_LEFT);
        return;
    }
    if ((events & EPOLLOUT) && !connection->is_tls && connection->wants_writable)
        plain_writable(connection);
}

static void on_watch(uv_poll_t *watch_handle, int status, int events)
{
    struct server *server = watch_handle->data;
    struct epoll_event ready[256];
    int count;

    (void)status;
    (void)events;
    do {
        count = epoll_wait(server->stream_watch_fd, ready, 256, 0);
        for (int i = 0; i < count; i++)
            on_stream_events(ready[i].data.ptr, ready[i].events);
    } while (count == 256);
}

int http_stream_watch_start(struct server *server)
{
    int r;

    server->stream_watch_fd = epoll_create1(EPOLL_CLOEXEC);
    if (server->stream_watch_fd < 0)
        return -errno;
    server->stream_watch = mem_zalloc(sizeof(*server->stream_watch));
    if (!server->stream_watch)
        return -ENOMEM;
    r = uv_poll_init(server->settings.loop, server->stream_watch, server->stream_watch_fd);
    if (r < 0) {
        mem_free(server->stream_watch);
        server->stream_watch = NULL;
        return r;
    }
    server->stream_watch->data = server;
    return uv_poll_start(server->stream_watch, UV_READABLE, on_watch);
}

static void free_watch(uv_handle_t *watch_handle)
{
    mem_free(watch_handle);
}

void http_stream_watch_stop(struct server *server)
{
    if (server->stream_watch)
        uv_close((uv_handle_t *)server->stream_watch, free_watch);
    server->stream_watch = NULL;
    if (server->stream_watch_fd >= 0)
        close(server->stream_watch_fd);
    server->stream_watch_fd = -1;
}
