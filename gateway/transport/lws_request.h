/* gateway/transport/lws_request.h - what libwebsockets parsed, as a request that the front reads.
 */
#pragma once

#include <libwebsockets.h>

#include "base/buffer.h"
#include "gateway/http/http.h"

/* Fills *ret_request, but for `body`, with slices into `room`, which is cleared first and must
 * outlive them. libwebsockets has decoded the query; it is encoded again, so that there is one
 * parser for queries and forms. 0; -ENOMEM. */
int lws_request_read(struct lws *wsi, bool is_upgrade, struct buffer *room,
                     struct http_request *ret_request);

/* 0; -EPROTO: a header that may come once came again, and *refusal is the answer. Of headers that
 * libwebsockets does not know (Idempotency-Key, Last-Event-ID) it shows the first one only. */
int lws_request_check(struct lws *wsi, struct http_refusal *refusal);
