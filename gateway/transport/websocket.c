/* websocket.c - writing to a WebSocket past libwebsockets, but never between its bytes.
 *
 * Frames are complete and immutable, so a plain socket gets them by sendmsg(2), shared pieces and
 * all. libwebsockets writes too (pongs, closes), so the two must never cut into each other's
 * frames. The rule that guarantees it: while libwebsockets holds anything we do not write, and
 * whatever of a frame the socket does not take is handed to libwebsockets at once, which sends it
 * before anything of its own. Over TLS every write goes through libwebsockets. */
#include <errno.h>
#include <sys/socket.h>

#include "base/utf8.h"
#include "gateway/transport/connection.h"
#include "gateway/transport/server_private.h"

enum { MAX_MESSAGE_BYTES = 256 << 10, MAX_TLS_WRITE = 64 << 10 };

/* Copies the pieces into the server's scratch: libwebsockets takes one run of bytes. */
static struct sl_slice join(struct connection *connection, const struct iovec *pieces, int count)
{
    struct buffer *scratch = &connection->server->scratch;

    buffer_clear(scratch);
    for (int i = 0; i < count; i++)
        buffer_append(scratch, pieces[i].iov_base, pieces[i].iov_len);
    return scratch->failed ? SL_SLICE_NONE : buffer_slice(scratch);
}

/* LWS_WRITE_RAW puts no header into the bytes and before them; an unsent rest is kept and sent
 * first. Its return value says only whether the connection broke. */
static int write_through(struct connection *connection, const struct iovec *pieces, int count)
{
    struct sl_slice bytes = join(connection, pieces, count);

    if (!bytes.data)
        return -ENOMEM;
    if (lws_write(connection->wsi, (unsigned char *)bytes.data, bytes.size, LWS_WRITE_RAW) < 0)
        return -EPIPE;
    if (lws_partial_buffered(connection->wsi))
        connection->held_count++;
    return (int)bytes.size;
}

static void await_writable(struct connection *connection)
{
    if (connection->wants_writable)
        return;
    connection->wants_writable = true;
    lws_callback_on_writable(connection->wsi);
}

static ssize_t websocket_send(struct client *client, const struct iovec *pieces, int count)
{
    struct connection *connection = connection_of(client);
    struct msghdr message = {.msg_iov = (struct iovec *)pieces, .msg_iovlen = (size_t)count};
    ssize_t sent;

    if (connection->is_tls)
        return write_through(connection, pieces, count);
    sent = sendmsg(connection->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0)
        return sent;
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        return -errno;
    await_writable(connection);
    return 0;
}

static int websocket_hold(struct client *client, const struct iovec *pieces, int count)
{
    int r = write_through(connection_of(client), pieces, count);

    if (r < 0)
        return r;
    await_writable(connection_of(client));
    return 0;
}

static bool websocket_is_blocked(const struct client *client)
{
    const struct connection *connection = connection_of(client);

    return connection->wants_writable || lws_partial_buffered(connection->wsi);
}

static void websocket_evict(struct client *client, enum farewell farewell)
{
    connection_evict(connection_of(client), farewell);
}

static void websocket_broken(struct client *client)
{
    connection_doom(connection_of(client), DOOM_BROKEN);
}

const struct transport websocket_transport = {
    .send = websocket_send,
    .hold = websocket_hold,
    .is_blocked = websocket_is_blocked,
    .evict = websocket_evict,
    .broken = websocket_broken,
};

/* libwebsockets sends the close frame and waits for the answer; our deadline is the longest. */
void websocket_begin_close(struct connection *connection)
{
    const struct farewell_row *row = farewell_row(connection->farewell);

    lws_close_reason(connection->wsi, row->close_code, (unsigned char *)row->code,
                     strlen(row->code));
    lws_set_timeout(connection->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_SYNC);
}

static int on_writable(struct connection *connection)
{
    connection->wants_writable = false;
    if (lws_partial_buffered(connection->wsi)) {
        connection->wants_writable = true; /* libwebsockets calls again by itself */
        return 0;
    }
    connection->held_count = 0;
    connection_writable(connection);
    return 0;
}

/* Puts fragments together; a message is complete when nothing of it remains. */
static void on_receive(struct connection *connection, const void *in, size_t size)
{
    struct buffer *incoming = &connection->incoming;

    if (connection->stage != CONNECTION_WEBSOCKET || connection->doom != DOOM_NONE)
        return;
    if (lws_frame_is_binary(connection->wsi)) {
        connection_evict(connection, FAREWELL_BAD_DATA);
        return;
    }
    if (incoming->size + size > MAX_MESSAGE_BYTES) {
        connection_evict(connection, FAREWELL_TOO_BIG);
        return;
    }
    buffer_append(incoming, in, size);
    if (incoming->failed) {
        connection_evict(connection, FAREWELL_INTERNAL);
        return;
    }
    if (!lws_is_final_fragment(connection->wsi) || lws_remaining_packet_payload(connection->wsi))
        return;
    if (!utf8_is_valid(buffer_slice(incoming)))
        connection_evict(connection, FAREWELL_BAD_UTF8);
    else if (connection->rules)
        rules_message(connection, buffer_slice(incoming));
    else
        connection_evict(connection, FAREWELL_BAD_MESSAGE); /* this stream listens to nothing */
    buffer_done(incoming);
}

int websocket_callback(struct connection *connection, enum lws_callback_reasons reason, void *in,
                       size_t size)
{
    switch (reason) {
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return on_writable(connection);
    case LWS_CALLBACK_RECEIVE:
        connection->pinged_ms = 0; /* whatever it says, it lives */
        on_receive(connection, in, size);
        return 0;
    case LWS_CALLBACK_RECEIVE_PONG:
        connection->pinged_ms = 0;
        return 0;
    case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
        /* From here on only libwebsockets writes: its answer to the close frame is the last. */
        connection_leave_delivery(connection);
        return 0;
    default:
        return 0;
    }
}
