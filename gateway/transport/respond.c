/* respond.c - a response is printed as a whole and sent as a whole.
 *
 * What comes later is written by ourselves on a plain socket, as streams are: a client that does
 * not read its answer, and sends on, keeps nothing busy. Over TLS it waits for a callback of
 * libwebsockets, in which it is written and the exchange ended at once: would libwebsockets read
 * in between, it took what it read for the body of a request that is answered. The
 * client's time to read it is limited. */
#include "gateway/transport/respond.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>

#include "gateway/transport/server_private.h"

enum { SEND_MS = 30000 }; /* for the client to read some of an answer, over TLS all of it */

/* --- printing --- */

static void print_response(const struct response_form *form, const struct answer *answer,
                           struct buffer *out)
{
    buffer_clear(out);
    buffer_append_format(out, "HTTP/1.%c %d %s\r\n", form->is_http_1_0 ? '0' : '1', answer->status,
                         http_reason(answer->status));
    if (answer->content_type)
        buffer_append_format(out, "Content-Type: %s\r\n", answer->content_type);
    if (answer->status != 204 && answer->status != 304)
        buffer_append_format(out, "Content-Length: %zu\r\n", answer->body.size);
    buffer_append_format(out, "Cache-Control: %s\r\nX-Content-Type-Options: nosniff\r\n",
                         answer->cache_control ? answer->cache_control : "no-store");
    buffer_append_slice(out, buffer_slice(&form->cors));
    buffer_append_slice(out, answer->headers);
    if (form->closes)
        buffer_append_str(out, "Connection: close\r\n");
    buffer_append_str(out, "\r\n");
    if (!form->is_head)
        buffer_append_slice(out, answer->body);
}

void respond_append_cors(const struct connection *connection, const struct http_request *http,
                         struct buffer *headers)
{
    if (!http->origin.data)
        return;
    buffer_append_str(headers, "Vary: Origin\r\n");
    if (!origin_is_allowed(connection->server->settings.origins, http->origin, http->host))
        return;
    buffer_append_format(headers,
                         "Access-Control-Allow-Origin: %.*s\r\n"
                         "Access-Control-Expose-Headers: Idempotency-Replayed, Location, "
                         "Retry-After, WWW-Authenticate\r\n",
                         SL_SLICE_ARG(http->origin));
}

static void append_refusal_headers(const struct http_refusal *refusal, struct buffer *headers)
{
    if (refusal->www_authenticate)
        buffer_append_format(headers, "WWW-Authenticate: %s\r\n", refusal->www_authenticate);
    if (refusal->allow)
        buffer_append_format(headers, "Allow: %s\r\n", refusal->allow);
    if (refusal->retry_after_s)
        buffer_append_format(headers, "Retry-After: %u\r\n", refusal->retry_after_s);
    if (refusal->status == 426)
        buffer_append_str(headers, "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                                   "Sec-WebSocket-Version: 13\r\n");
}

static void count_refusal(struct server *server, const struct http_refusal *refusal)
{
    uint64_t held_back;

    metric_add(server->settings.metrics, METRIC_REFUSED_REQUESTS, 1);
    if (log_rate_allows(&server->refusal_rate, uv_now(server->settings.loop), &held_back))
        log_info("refused", "status=%d code=%s param=%s held_back=%" PRIu64, refusal->status,
                 refusal->code, refusal->param[0] ? refusal->param : "-", held_back);
}

/* The request may be followed by something that is not another one: a body that was not read, the
 * first bytes of a WebSocket. */
static struct response_form form_of(const struct connection *connection,
                                    const struct http_request *http)
{
    struct response_form form = {
        .is_head = http->method == HTTP_HEAD,
        .is_http_1_0 = http->is_http_1_0,
        .had_body = http->body.size > 0,
        .closes = http->wants_close || http->is_upgrade || !connection->is_whole ||
                  connection->server->is_draining,
    };

    respond_append_cors(connection, http, &form.cors);
    return form;
}

/* --- at once --- */

static uint64_t send_deadline(const struct connection *connection)
{
    return uv_now(connection->server->settings.loop) + SEND_MS;
}

/* Over TLS: changes whenever libwebsockets reads from the connection. */
static uint64_t read_mark(const struct connection *connection)
{
    SSL *tls = connection->is_tls ? lws_get_ssl(connection->wsi) : NULL;

    /* raw bytes, and behind them what is decrypted and not read: a record, 16 KiB at most */
    return tls ? BIO_number_read(SSL_get_rbio(tls)) << 16 | (uint64_t)SSL_pending(tls) : 0;
}

bool respond_was_sent_ahead(const struct connection *connection)
{
    return connection->read_mark && connection->read_mark == read_mark(connection);
}

/* A plain connection's next request comes in by the doorway like its first; over TLS libwebsockets
 * sees to it. */
static int end_exchange(struct connection *connection, const struct response_form *form)
{
    buffer_done(&connection->incoming);
    connection->is_whole = false;
    connection->stage = CONNECTION_REQUEST;
    connection->deadline_ms = lws_partial_buffered(connection->wsi) ? send_deadline(connection) : 0;
    connection_arm(connection);
    if (form->closes)
        return -1;
    connection->is_idle = true;
    connection->read_mark = read_mark(connection);
    if (connection->is_tls && form->had_body && lws_partial_buffered(connection->wsi))
        return -1; /* as below; else it would read on as if more of the body came */
    if (connection->is_tls)
        return lws_http_transaction_completed(connection->wsi) ? -1 : 0;
    if (lws_partial_buffered(connection->wsi))
        return -1; /* libwebsockets sends the rest, and then closes */
    connection->may_serve_again = true;
    connection_doom(connection, DOOM_PEER_LEFT);
    return 0;
}

int respond(struct connection *connection, const struct http_request *http,
            const struct answer *answer)
{
    struct buffer *out = &connection->server->scratch;
    struct response_form form = form_of(connection, http);

    print_response(&form, answer, out);
    if (form.cors.failed)
        out->failed = true;
    buffer_done(&form.cors);
    if (out->failed ||
        lws_write(connection->wsi, (unsigned char *)out->data, out->size, LWS_WRITE_HTTP) < 0)
        return -1;
    return end_exchange(connection, &form);
}

int respond_refusal(struct connection *connection, const struct http_request *http,
                    const struct http_refusal *refusal)
{
    struct buffer headers = BUFFER_INIT, body = BUFFER_INIT;
    int r = -1;

    count_refusal(connection->server, refusal);
    append_refusal_headers(refusal, &headers);
    http_refusal_print(refusal, &body);
    if (!headers.failed && !body.failed)
        r = respond(connection, http,
                    &(struct answer){.status = refusal->status,
                                     .content_type = "application/json",
                                     .headers = buffer_slice(&headers),
                                     .body = buffer_slice(&body)});
    buffer_done(&headers);
    buffer_done(&body);
    return r;
}

/* --- later --- */

int respond_later(struct connection *connection, const struct http_request *http)
{
    connection->response_form = form_of(connection, http);
    buffer_done(&connection->incoming);
    connection->client.transport = &http_stream_transport; /* it writes; delivery does not */
    connection->stage = CONNECTION_ANSWERING;
    connection->deadline_ms = 0; /* the API has one of its own */
    connection_arm(connection);
    http_stream_stop_reading(connection);
    return 0;
}

static int hold_rest(struct connection *connection, struct sl_slice rest)
{
    struct iovec piece = {(char *)rest.data, rest.size};
    int r;

    r = http_stream_transport.hold(&connection->client, &piece, 1);
    return r < 0 ? r : http_stream_watch(connection, EPOLLOUT);
}

static int send_plain(struct connection *connection, struct sl_slice bytes)
{
    struct iovec piece = {(char *)bytes.data, bytes.size};
    ssize_t sent = http_stream_transport.send(&connection->client, &piece, 1);

    if (sent < 0)
        return (int)sent;
    if ((size_t)sent < bytes.size)
        return hold_rest(connection, sl_slice_from(bytes, (size_t)sent));
    respond_sent(connection);
    return 0;
}

/* In the callback that is asked for here. */
static int send_over_tls(struct connection *connection, struct sl_slice bytes)
{
    buffer_append_slice(&connection->held, bytes);
    connection->stage = CONNECTION_ANSWERED;
    http_stream_go_on_reading(connection);
    lws_callback_on_writable(connection->wsi);
    return connection->held.failed ? -ENOMEM : 0;
}

void respond_now(struct connection *connection, const struct answer *answer)
{
    struct response_form *form = &connection->response_form;
    struct buffer out = BUFFER_INIT;
    int r = -ENOMEM;

    form->closes = form->closes || connection->server->is_draining;
    respond_progress(connection);
    print_response(form, answer, &out);
    if (!out.failed && !form->cors.failed)
        r = connection->is_tls ? send_over_tls(connection, buffer_slice(&out))
                               : send_plain(connection, buffer_slice(&out));
    if (r < 0)
        connection_doom(connection, DOOM_BROKEN);
    buffer_done(&out);
}

void respond_refusal_now(struct connection *connection, const struct http_refusal *refusal)
{
    struct buffer headers = BUFFER_INIT, body = BUFFER_INIT;

    count_refusal(connection->server, refusal);
    append_refusal_headers(refusal, &headers);
    http_refusal_print(refusal, &body);
    if (headers.failed || body.failed)
        connection_doom(connection, DOOM_BROKEN);
    else
        respond_now(connection, &(struct answer){.status = refusal->status,
                                                 .content_type = "application/json",
                                                 .headers = buffer_slice(&headers),
                                                 .body = buffer_slice(&body)});
    buffer_done(&headers);
    buffer_done(&body);
}

void respond_progress(struct connection *connection)
{
    connection->deadline_ms = send_deadline(connection);
    connection_arm(connection);
}

void respond_sent(struct connection *connection)
{
    http_stream_unwatch(connection);
    connection->may_serve_again = !connection->response_form.closes;
    connection_doom(connection, DOOM_PEER_LEFT);
}

int respond_held(struct connection *connection)
{
    struct buffer out = connection->held;
    int r;

    connection->held = BUFFER_INIT;
    connection->client.transport = NULL;
    buffer_done(&connection->response_form.cors);
    r = lws_write(connection->wsi, (unsigned char *)out.data, out.size, LWS_WRITE_HTTP);
    buffer_done(&out);
    return r < 0 ? -1 : end_exchange(connection, &connection->response_form);
}
