/* gateway/streams/filter_estimate.h - inside streams: estimates of what a filter would bring, each
 * an answer that is worked on in the time of those who catch up. */
#pragma once

#include "gateway/streams/stream.h"

enum {
    FILTER_ESTIMATES_PER_SUBJECT = 2, /* at a time, on a worker */
    FILTER_ESTIMATES_MAX = 16         /* of all together; each takes up to a megabyte */
};

/* Answers the request, later. 0; -EPROTO: *refusal is the answer; -ENOMEM. */
int filter_estimate_begin(struct streams *streams, struct http_connection *connection,
                          const struct http_request *http, struct http_refusal *refusal,
                          enum token_fault *ret_fault);
