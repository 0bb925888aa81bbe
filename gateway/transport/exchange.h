/* gateway/transport/exchange.h - inside transport: one HTTP request and its answer.
 *
 * Each function is called from a callback of libwebsockets and returns what the callback returns:
 * 0 to go on, negative to close the connection. */
#pragma once

#include "base/slice.h"
#include "gateway/transport/connection.h"

/* The head is there: answers, begins a stream, or waits for the body. */
int exchange_begin(struct connection *connection);
int exchange_body(struct connection *connection, struct sl_slice part);
int exchange_body_complete(struct connection *connection);

/* A request to become a WebSocket: 0 lets libwebsockets do the handshake. */
int exchange_upgrade(struct connection *connection);

/* --- for pages.c, too --- */

/* May streams begin now? 0; -EPROTO: *refusal says why not. */
int exchange_check_readiness(const struct server *server, struct http_refusal *refusal);
void exchange_count_token_fault(struct server *server, enum token_fault fault);
