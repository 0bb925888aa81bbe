/* http_stream.c - an endless response, chunked unless the client speaks HTTP/1.0. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "gateway/transport/connection.h"
#include "gateway/transport/server_private.h"

static const char *const content_types[WIRE_FORMAT_COUNT] = {
    [WIRE_NDJSON] = "application/x-ndjson",
    [WIRE_DELIMITED] = "application/x-ndjson",
    [WIRE_SSE] = "text/event-stream",
};

/* --- the table --- */

static ssize_t http_stream_send(struct client *client, const struct iovec *pieces, int count)
{
    return http_output_send(connection_of(client), pieces, count);
}

static int http_stream_hold(struct client *client, const struct iovec *pieces, int count)
{
    return http_output_hold(connection_of(client), pieces, count);
}

static bool http_stream_is_blocked(const struct client *client)
{
    return connection_of(client)->wants_writable;
}

static void http_stream_evict(struct client *client, enum farewell farewell)
{
    connection_evict(connection_of(client), farewell);
}

static void http_stream_broken(struct client *client)
{
    connection_doom(connection_of(client), DOOM_BROKEN);
}

static const struct transport http_stream_transport = {
    .send = http_stream_send,
    .hold = http_stream_hold,
    .is_blocked = http_stream_is_blocked,
    .evict = http_stream_evict,
    .broken = http_stream_broken,
};

/* --- beginning and end --- */

static int send_head(struct connection *connection, bool is_http_1_0, struct sl_slice cors)
{
    struct buffer head = BUFFER_INIT;
    int r;

    buffer_append_format(&head,
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
    r = head.failed ? -ENOMEM : http_output_write(connection, buffer_slice(&head));
    buffer_done(&head);
    return r;
}

int http_stream_open(struct connection *connection, bool is_http_1_0, struct sl_slice cors)
{
    int r;

    connection->client.unchunked = is_http_1_0;
    r = send_head(connection, is_http_1_0, cors);
    if (r < 0)
        return r;
    lws_http_headers_detach(connection->wsi);
    http_output_stop_reading(connection);
    r = http_output_watch(connection, EPOLLOUT | EPOLLRDHUP);
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
