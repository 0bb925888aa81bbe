/* gateway/streams/dialect_connection_query.h - lists and ends the connections of a token's subject,
 * in the format of a dialect.
 *
 * All workers of all gateways are asked, as for /v1/connections (connections.h), and the same
 * scopes are needed. */
#pragma once

#include "gateway/front/dialect.h"
#include "gateway/http/http_server.h"

struct streams;

/* Sends a refusal after the request itself has been freed. */
typedef void (*dialect_refuse_late_fn)(struct http_connection *connection,
                                       const struct dialect *dialect,
                                       const struct http_refusal *refusal);

/* Processes a request for a route with `connections`. 0: it has been answered, or will be; -EPROTO:
 * respond with *refusal. */
int dialect_connection_query_begin(struct streams *streams, struct http_connection *connection,
                                   const struct dialect *dialect, const struct dialect_route *route,
                                   const struct http_head *head, dialect_refuse_late_fn refuse_late,
                                   struct http_refusal *refusal, enum token_fault *ret_fault);
