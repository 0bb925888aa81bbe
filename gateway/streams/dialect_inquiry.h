/* gateway/streams/dialect_inquiry.h - one's own connections, listed and ended in the words of a
 * dialect.
 *
 * All workers of all gateways are asked, as for /v1/connections (connections.h), and the same
 * scopes are needed. */
#pragma once

#include "gateway/front/dialect.h"
#include "gateway/http/http_server.h"

struct streams;

/* Says what is refused when the request is gone. */
typedef void (*dialect_refuse_late_fn)(struct http_connection *connection,
                                       const struct dialect *dialect,
                                       const struct http_refusal *refusal);

/* A request for a route with `connections` is answered, perhaps later. -EPROTO: it is not,
 * *refusal. */
int dialect_inquiry_begin(struct streams *streams, struct http_connection *connection,
                          const struct dialect *dialect, const struct dialect_route *route,
                          const struct http_head *head, dialect_refuse_late_fn refuse_late,
                          struct http_refusal *refusal, enum token_fault *ret_fault);
