/* gateway/http/http_server.h - HTTP/1.1 on the connections of a worker: requests in, answers out.
 *
 *     acceptor -> wire -> head -> body -> handler -> answer -> next request
 *
 * A request is handed to the handler when it is whole: a head with slices of what was received, and
 * the body. The handler answers at once, says that it will answer later, or takes the connection
 * over for something that is not HTTP any more. Requests that are sent ahead wait for their turn.
 *
 * Every connection that is not being answered waits in one of three lists, each with a bound and a
 * time limit; where a list is full, the one that has waited longest goes:
 *
 *   - pending: its request, its TLS handshake, or its PROXY header is not complete;
 *   - idle: it was served, and may ask again;
 *   - lingering: it was told that it ends, and what it still sends is thrown away, for closing over
 *     unread bytes would reset it and could take the answer with it. */
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
    /* The head of a request is there, its body not yet: is it worth reading? 0; negative: *refusal
     * is the answer, and the body is not read. Not asked when the body came with the head: so
     * handle() refuses the same. */
    int (*check)(void *owner, struct http_connection *connection, const struct http_head *head,
                 struct http_refusal *refusal);
    /* A request is whole. The callee calls one of http_answer(), http_answer_refusal(),
     * http_answer_later() and http_take_over(). `head` is gone when this returns. */
    void (*handle)(void *owner, struct http_connection *connection, const struct http_head *head);
    /* A request is refused before it is whole, by check() or by the server: answers with `refusal`
     * in the words of its path. What is behind the headers is not there. NULL:
     * http_answer_refusal().
     */
    void (*refuse)(void *owner, struct http_connection *connection,
                   const struct http_request *request, const struct http_refusal *refusal);
};

struct http_server_settings {
    uv_loop_t *loop;
    struct turn *turn; /* where connections are closed */
    struct wires *wires;
    struct metrics *metrics;
    const struct http_handler *handler;
    void *owner;                      /* of the handler */
    const struct client_trust *trust; /* as it is at each request; NULL: no proxy is trusted */
    size_t max_head_bytes;
    size_t max_body_bytes;
    uint32_t timeout_ms; /* for a request to come in whole, and for the next one to begin */
    size_t max_pending, max_idle, max_lingering;
};

/* NULL: out of memory. */
struct http_server *http_server_new(const struct http_server_settings *settings);
/* A connection has been accepted, and is the server's now. `listener`: what the handler is told of
 * it. `with_proxy`: a PROXY header comes first, from a trusted proxy; otherwise it is closed. */
void http_server_accept(struct http_server *server, int fd, bool with_tls, bool with_proxy,
                        unsigned listener);
/* Every connection ends with its next answer; those that have not asked anything are closed, unless
 * a successor accepts from the same sockets, so that they may have come here by chance. */
void http_server_drain(struct http_server *server, bool has_successor);
/* Is a request coming in, or being answered? One that has just connected counts: its request may
 * be on its way. */
bool http_server_is_busy(const struct http_server *server);
/* Closes what is left. The loop must then run until it is empty. */
void http_server_close(struct http_server *server);
void http_server_free(struct http_server *server);

/* --- for the handler --- */

void *http_connection_owner(const struct http_connection *connection); /* of the handler */
unsigned http_connection_listener(const struct http_connection *connection);
const struct wire *http_connection_wire(const struct http_connection *connection);

/* Header lines for the answer to this request, whatever it will be; copied. */
void http_connection_set_headers(struct http_connection *connection, struct sl_slice headers);
/* The same lines, for whoever adds to them before it is answered. */
struct buffer *http_connection_headers(struct http_connection *connection);

/* Answers the request, from handle() or, after http_answer_later(), from anywhere in the loop. */
void http_answer(struct http_connection *connection, const struct http_answer *answer);
void http_answer_refusal(struct http_connection *connection, const struct http_refusal *refusal);
/* `abandoned`: the connection has ended, and the answer is not wanted any more. */
void http_answer_later(struct http_connection *connection, void (*abandoned)(void *owner),
                       void *owner);
/* From handle(): the wire, with all that was sent before on its way, is the caller's, and no HTTP
 * any more; what had come behind the head follows by callbacks->received at once. The connection
 * is gone; METRIC_CONNECTIONS counts the wire on, until the caller takes it off. */
void http_take_over(struct http_connection *connection, struct wire *wire,
                    const struct wire_callbacks *callbacks);
/* The same after http_answer_later(), from anywhere in the loop. *ret_rest is the caller's: what
 * had come behind the head, which callbacks->received is not called for. */
void http_take_over_late(struct http_connection *connection, struct wire *wire,
                         const struct wire_callbacks *callbacks, struct buffer *ret_rest);
