/* gateway/transport/respond.h - inside transport: the answer to a plain request.
 *
 * At once, from the callback of libwebsockets in which the request was complete, or later, when the
 * API has it. In between nothing is read from the connection: what the client sends ahead waits. */
#pragma once

#include "gateway/transport/connection.h"

struct answer {
    int status;
    const char *content_type;  /* NULL: no body */
    const char *cache_control; /* NULL: nobody keeps it */
    struct sl_slice headers;   /* more of them, each with its CRLF */
    struct sl_slice body;
};

/* --- at once: each returns what the callback returns --- */

int respond(struct connection *connection, const struct http_request *http,
            const struct answer *answer);
int respond_refusal(struct connection *connection, const struct http_request *http,
                    const struct http_refusal *refusal);

/* 405: the path takes only the methods in `allow`. */
int respond_method_refusal(struct connection *connection, const struct http_request *http,
                           const char *allow);

/* Header lines that tell a browser whether the page may read the answer. */
void respond_append_cors(const struct connection *connection, const struct http_request *http,
                         struct buffer *headers);

/* --- later --- */

/* The callback's return value; then, not from a callback, one of the next two. */
int respond_later(struct connection *connection, const struct http_request *http);
void respond_now(struct connection *connection, const struct answer *answer);
void respond_refusal_now(struct connection *connection, const struct http_refusal *refusal);

/* The socket has taken some of what was held of the answer: the client does read. */
void respond_progress(struct connection *connection);
/* It has taken all of it. Not from a callback of libwebsockets. */
void respond_sent(struct connection *connection);

/* Over TLS, at the beginning of a request: libwebsockets had read its head together with the
 * request before it. With a body behind it, libwebsockets (4.1, 4.3) takes the head for the body,
 * and may do so for ever. */
bool respond_was_sent_ahead(const struct connection *connection);
