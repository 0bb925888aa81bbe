/* http_output.c - what goes out over HTTP, answers and streams, is written by ourselves.
 *
 * While libwebsockets has an HTTP response under way it must not read: 4.1 does not, but does not
 * stop watching for input either, so that one more byte from the client, or its half-close, makes
 * the loop spin (upstream issue 2455); 4.3 reads, and hangs up because it does not know what to do
 * with what it got. So its reading is switched off from the request to the end of the response.
 * With that it no longer notices a peer that has gone, nor when the socket has room again, and
 * sends nothing that it still holds. Hence a watcher of our own: one epoll set for all sockets,
 * edge-triggered, itself watched by the loop; and all output is ours, over TLS through the
 * connection's SSL. Libwebsockets writes nothing meanwhile, so nothing can get between our bytes.
 *
 * A TLS record that the socket does not take whole stays in OpenSSL, which then wants to be offered
 * the same bytes again before any others: they are held, and count as sent. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "gateway/transport/connection.h"
#include "gateway/transport/respond.h"
#include "gateway/transport/server_private.h"

enum { RECORD_SIZE = 16384 };

/* --- reading --- */

static void switch_rx(struct connection *connection, bool on)
{
    connection->rx_is_off = !on;
    lws_rx_flow_control(connection->wsi, LWS_RXFLOW_REASON_USER_BOOL |
                                             LWS_RXFLOW_REASON_FLAG_PROCESS_NOW |
                                             (on ? LWS_RXFLOW_REASON_APPLIES_ENABLE
                                                 : LWS_RXFLOW_REASON_APPLIES_DISABLE));
}

void http_output_settle(struct connection *connection)
{
    lws_set_timeout(connection->wsi, NO_PENDING_TIMEOUT, 0);
    switch_rx(connection, false);
}

void http_output_stop_reading(struct connection *connection)
{
    if (connection->server->given_body)
        connection_schedule(connection); /* as soon as the head has been taken */
    else
        http_output_settle(connection);
}

void http_output_go_on_reading(struct connection *connection)
{
    if (connection->rx_is_off)
        switch_rx(connection, true);
}

/* --- writing --- */

static ssize_t plain_write(struct connection *connection, const struct iovec *pieces, int count)
{
    struct msghdr message = {.msg_iov = (struct iovec *)pieces, .msg_iovlen = (size_t)count};
    ssize_t sent = sendmsg(connection->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (sent >= 0)
        return sent;
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        return -errno;
    connection->wants_writable = true; /* the edge will come */
    return 0;
}

static size_t record_of(size_t size)
{
    return size < RECORD_SIZE ? size : RECORD_SIZE;
}

/* A record at a time: OpenSSL takes all of it or none. */
static ssize_t tls_write(struct connection *connection, struct sl_slice bytes)
{
    SSL *tls = lws_get_ssl(connection->wsi);
    size_t sent = 0;
    int r;

    while (sent < bytes.size) {
        ERR_clear_error();
        r = SSL_write(tls, bytes.data + sent, (int)record_of(bytes.size - sent));
        if (r <= 0 && SSL_get_error(tls, r) != SSL_ERROR_WANT_WRITE)
            return -EPIPE;
        if (r <= 0) {
            connection->wants_writable = true;
            break;
        }
        sent += (size_t)r;
    }
    return (ssize_t)sent;
}

static struct sl_slice join(struct connection *connection, const struct iovec *pieces, int count)
{
    struct buffer *scratch = &connection->server->scratch;

    if (count == 1)
        return sl_slice(pieces[0].iov_base, pieces[0].iov_len);
    buffer_clear(scratch);
    for (int i = 0; i < count; i++)
        buffer_append(scratch, pieces[i].iov_base, pieces[i].iov_len);
    return scratch->failed ? SL_SLICE_NONE : buffer_slice(scratch);
}

static ssize_t tls_send(struct connection *connection, const struct iovec *pieces, int count)
{
    struct sl_slice bytes = join(connection, pieces, count), begun;
    ssize_t sent;

    if (!bytes.data)
        return -ENOMEM;
    sent = tls_write(connection, bytes);
    if (sent < 0 || !connection->wants_writable)
        return sent;
    begun = sl_slice_from(bytes, (size_t)sent);
    begun.size = record_of(begun.size);
    buffer_append_slice(&connection->held, begun);
    return connection->held.failed ? -ENOMEM : sent + (ssize_t)begun.size;
}

ssize_t http_output_send(struct connection *connection, const struct iovec *pieces, int count)
{
    return connection->is_tls ? tls_send(connection, pieces, count)
                              : plain_write(connection, pieces, count);
}

int http_output_hold(struct connection *connection, const struct iovec *pieces, int count)
{
    for (int i = 0; i < count; i++)
        buffer_append(&connection->held, pieces[i].iov_base, pieces[i].iov_len);
    connection->wants_writable = true;
    return connection->held.failed ? -ENOMEM : 0;
}

int http_output_write(struct connection *connection, struct sl_slice bytes)
{
    struct iovec piece = {(char *)bytes.data, bytes.size};
    ssize_t sent = http_output_send(connection, &piece, 1);

    if (sent < 0)
        return (int)sent;
    piece = (struct iovec){(char *)bytes.data + sent, bytes.size - (size_t)sent};
    return piece.iov_len > 0 ? http_output_hold(connection, &piece, 1) : 0;
}

/* --- the watcher --- */

static ssize_t write_held(struct connection *connection)
{
    struct buffer *held = &connection->held;
    struct iovec piece = {held->data, held->size};

    return connection->is_tls ? tls_write(connection, buffer_slice(held))
                              : plain_write(connection, &piece, 1);
}

static void on_room(struct connection *connection)
{
    struct buffer *held = &connection->held;
    ssize_t sent;

    connection->wants_writable = false;
    if (held->size > 0) {
        sent = write_held(connection);
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

static void on_events(struct connection *connection, uint32_t events)
{
    if (!connection->wsi)
        return; /* closed earlier in the same batch; the memory is still there */
    if (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) {
        connection_doom(connection, DOOM_PEER_LEFT);
        return;
    }
    if ((events & EPOLLOUT) && connection->wants_writable)
        on_room(connection);
}

static void on_watch(uv_poll_t *watch_handle, int status, int events)
{
    struct server *server = watch_handle->data;
    struct epoll_event ready[256];
    int count;

    (void)status;
    (void)events;
    do {
        count = epoll_wait(server->output_watch_fd, ready, 256, 0);
        for (int i = 0; i < count; i++)
            on_events(ready[i].data.ptr, ready[i].events);
    } while (count == 256);
}

int http_output_watch(struct connection *connection, uint32_t events)
{
    struct epoll_event event = {.events = events | EPOLLET, .data.ptr = connection};

    if (epoll_ctl(connection->server->output_watch_fd, EPOLL_CTL_ADD, connection->fd, &event) < 0)
        return -errno;
    return 0;
}

void http_output_unwatch(struct connection *connection)
{
    epoll_ctl(connection->server->output_watch_fd, EPOLL_CTL_DEL, connection->fd, NULL);
}

int http_output_start(struct server *server)
{
    int r;

    server->output_watch_fd = epoll_create1(EPOLL_CLOEXEC);
    if (server->output_watch_fd < 0)
        return -errno;
    server->output_watch = mem_zalloc(sizeof(*server->output_watch));
    if (!server->output_watch)
        return -ENOMEM;
    r = uv_poll_init(server->settings.loop, server->output_watch, server->output_watch_fd);
    if (r < 0) {
        mem_free(server->output_watch);
        server->output_watch = NULL;
        return r;
    }
    server->output_watch->data = server;
    return uv_poll_start(server->output_watch, UV_READABLE, on_watch);
}

static void free_watch(uv_handle_t *watch_handle)
{
    mem_free(watch_handle);
}

void http_output_stop(struct server *server)
{
    if (server->output_watch)
        uv_close((uv_handle_t *)server->output_watch, free_watch);
    server->output_watch = NULL;
    if (server->output_watch_fd >= 0)
        close(server->output_watch_fd);
    server->output_watch_fd = -1;
}
