/* gateway/http/http_server.h - HTTP/1.1 on the connections of a worker.
 *
 *     acceptor -> wire -> head -> body -> handler -> answer -> next request
 *
 * A request is passed to the handler when it is complete: a head with slices of the received bytes,
 * and the body. The handler answers at once, announces that it will answer later, or takes the
 * connection over for a protocol other than HTTP. Pipelined requests wait for their turn.
 *
 * Every connection that is not being answered waits in one of three lists, each with a limit and a
 * timeout. If a list is full, the connection that has waited longest is closed:
 *
 *   - pending: its request, its TLS handshake, or its PROXY header is incomplete;
 *   - idle: a request was answered, and it may send another one;
 *   - lingering: the peer was told that the connection ends, and further input is discarded,
 * because closing with unread input would reset the connection and could destroy the response. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "gateway/http/client_address.h"
#include "gateway/http/http.h"
#include "gateway/http/http_answer.h"
#include "gateway/http/http_head.h"
#include "gateway/http/turn.h"
#include "gateway/http/wire.h"
#include "gateway/metrics/metrics.h"

struct http_connection;
struct http_server;

struct http_handler {
    /* Called when the head of a request was received but not its body: whether to read the body. 0;
     * negative: respond with *refusal, the body is not read. Not called if the body arrived with
     * the head, so handle() must refuse the same requests. */
    int (*check)(void *owner, struct http_connection *connection, const struct http_head *head,
                 struct http_refusal *refusal);
    /* A request is complete. The callee calls one of http_answer(), http_answer_refusal(),
     * http_answer_later() and http_take_over(). `head` is valid during the call. */
    void (*handle)(void *owner, struct http_connection *connection, const struct http_head *head);
    /* A request is refused before it is complete, by check() or by the server: respond with
     * `refusal` in the form suitable for the path. Only the request line and headers are available.
     * NULL: http_answer_refusal() is used. */
    void (*refuse)(void *owner, struct http_connection *connection,
                   const struct http_request *request, const struct http_refusal *refusal);
};

struct http_server_settings {
    uv_loop_t *loop;
    struct turn *turn; /* by which connections are closed */
    struct wires *wires;
    struct metrics *metrics;
    const struct http_handler *handler;
    void *owner;                      /* passed to the handler's functions */
    const struct client_trust *trust; /* current value at each request; NULL: no proxy is trusted */
    size_t max_head_bytes;
    size_t max_body_bytes;
    uint32_t timeout_ms; /* for a complete request to arrive, and for the next one to begin */
    size_t max_pending, max_idle, max_lingering;
};

/* NULL: out of memory. */
struct http_server *http_server_new(const struct http_server_settings *settings);
/* Takes ownership of an accepted connection. `listener` is passed to the handler. `with_proxy`: a
 * PROXY header from a trusted proxy comes first; otherwise the connection is closed. */
void http_server_accept(struct http_server *server, int fd, bool with_tls, bool with_proxy,
                        unsigned listener);
/* Every connection ends with its next response. Those without a request are closed, unless a
 * successor accepts from the same sockets, because then their request may be under way. */
void http_server_drain(struct http_server *server, bool has_successor);
/* Whether a request is being received or answered. A connection that was just accepted counts,
 * because its request may be under way. */
bool http_server_is_busy(const struct http_server *server);
/* Closes all connections. The loop must then run until it is empty. */
void http_server_close(struct http_server *server);
void http_server_free(struct http_server *server);

/* --- for the handler --- */

void *http_connection_owner(const struct http_connection *connection); /* of the handler */
unsigned http_connection_listener(const struct http_connection *connection);
const struct wire *http_connection_wire(const struct http_connection *connection);

/* Sets header lines for the response to this request; copied. */
void http_connection_set_headers(struct http_connection *connection, struct sl_slice headers);
/* The same lines, to be extended before the response. */
struct buffer *http_connection_headers(struct http_connection *connection);
/* The same lines and the date, for a caller that takes over the wire and responds by itself. They
 * belong to the caller. */
struct buffer http_connection_take_headers(struct http_connection *connection);

/* Answers the request, from handle() or, after http_answer_later(), from anywhere in the loop. */
void http_answer(struct http_connection *connection, const struct http_answer *answer);
void http_answer_refusal(struct http_connection *connection, const struct http_refusal *refusal);
/* `abandoned` is called if the connection ends before the response. */
void http_answer_later(struct http_connection *connection, void (*abandoned)(void *owner),
                       void *owner);
/* Called from handle(): the caller takes over the wire, which no longer speaks HTTP. Everything
 * sent before is under way. Input after the head is passed to callbacks->received at once. The HTTP
 * connection is freed. METRIC_CONNECTIONS still counts the wire; the caller must decrement it at
 * the end. */
void http_take_over(struct http_connection *connection, struct wire *wire,
                    const struct wire_callbacks *callbacks);
/* The same after http_answer_later(), from anywhere in the loop. *ret_rest belongs to the caller:
 * the input after the head, which is not passed to callbacks->received. */
void http_take_over_late(struct http_connection *connection, struct wire *wire,
                         const struct wire_callbacks *callbacks, struct buffer *ret_rest);
