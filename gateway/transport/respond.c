/* respond.c - a response is printed as a whole and sent as a whole.
 *
 * We write it ourselves, as we do with streams: a client that does not read its answer, and sends
 * on, keeps nothing busy, and libwebsockets reads on only when the exchange has ended. The client's
 * time to read is limited. */
#include "gateway/transport/respond.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>

#include "gateway/transport/server_private.h"

enum { SEND_MS = 30000 }; /* for the client to read some of an answer */

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
        .closes = http->wants_close || http->is_upgrade || !connection->is_whole ||
                  connection->server->is_draining,
    };

    respond_append_cors(connection, http, &form.cors);
    return form;
}

/* --- sending --- */

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

/* The answer is out. A plain connection's next request comes in by the doorway like its first; over
 * TLS libwebsockets sees to it. 0; negative: close. */
static int end_exchange(struct connection *connection)
{
    connection->is_whole = false;
    connection->stage = CONNECTION_REQUEST;
    connection->deadline_ms = 0;
    connection_arm(connection);
    if (connection->response_form.closes)
        return -1;
    connection->is_idle = true;
    if (!connection->is_tls) {
        connection->may_serve_again = true;
        connection_doom(connection, DOOM_PEER_LEFT);
        return 0;
    }
    connection->read_mark = read_mark(connection);
    if (lws_http_transaction_completed(connection->wsi))
        return -1;
    http_output_go_on_reading(connection); /* it waits for room to write before it does */
    return 0;
}

/* Prints and sends; what the socket does not take is held. */
static int send_answer(struct connection *connection, const struct answer *answer)
{
    struct response_form *form = &connection->response_form;
    struct buffer out = BUFFER_INIT;
    int r = -ENOMEM;

    print_response(form, answer, &out);
    if (!out.failed && !form->cors.failed)
        r = http_output_write(connection, buffer_slice(&out));
    buffer_done(&form->cors);
    buffer_done(&out);
    return r;
}

void respond_progress(struct connection *connection)
{
    connection->deadline_ms = uv_now(connection->server->settings.loop) + SEND_MS;
    connection_arm(connection);
}

/* Some of the answer is held. */
static int await_room(struct connection *connection)
{
    respond_progress(connection);
    return http_output_watch(connection, EPOLLOUT);
}

/* The answer is out. Not from a callback of libwebsockets. */
static void finish(struct connection *connection)
{
    if (end_exchange(connection) == 0)
        return;
    connection->stage = CONNECTION_LEFT;
    connection_doom(connection, DOOM_PEER_LEFT);
}

void respond_sent(struct connection *connection)
{
    http_output_unwatch(connection);
    finish(connection);
}

/* --- at once --- */

/* From here on nothing is read for it until the answer is out. */
static void begin_answering(struct connection *connection)
{
    buffer_done(&connection->incoming);
    connection->stage = CONNECTION_ANSWERING;
    connection->deadline_ms = 0;
    connection_arm(connection);
    http_output_stop_reading(connection);
}

int respond(struct connection *connection, const struct http_request *http,
            const struct answer *answer)
{
    connection->response_form = form_of(connection, http);
    if (send_answer(connection, answer) < 0)
        return -1;
    if (!connection->wants_writable) {
        buffer_done(&connection->incoming);
        return end_exchange(connection);
    }
    begin_answering(connection);
    return await_room(connection) < 0 ? -1 : 0;
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

int respond_method_refusal(struct connection *connection, const struct http_request *http,
                           const char *allow)
{
    struct http_refusal refusal;

    http_refuse(&refusal, 405, "method_not_allowed", NULL, "this path takes %s", allow);
    refusal.allow = allow;
    return respond_refusal(connection, http, &refusal);
}

/* --- later --- */

int respond_later(struct connection *connection, const struct http_request *http)
{
    connection->response_form = form_of(connection, http);
    begin_answering(connection); /* the API has a deadline of its own */
    return 0;
}

void respond_now(struct connection *connection, const struct answer *answer)
{
    struct response_form *form = &connection->response_form;

    form->closes = form->closes || connection->server->is_draining;
    if (send_answer(connection, answer) < 0 ||
        (connection->wants_writable && await_room(connection) < 0))
        connection_doom(connection, DOOM_BROKEN);
    else if (!connection->wants_writable)
        finish(connection);
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
