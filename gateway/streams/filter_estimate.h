/* gateway/streams/filter_estimate.h - internal to streams: estimates how many events a filter would
 * match. Each estimate is a late answer; it is computed within the time budget of clients that
 * catch up. */
#pragma once

#include "gateway/streams/stream.h"

enum {
    FILTER_ESTIMATES_PER_SUBJECT = 2, /* in progress on a worker */
    FILTER_ESTIMATES_MAX = 16         /* of all subjects; each uses up to a megabyte */
};

/* 0: will be answered later; -EPROTO: respond with *refusal; -ENOMEM. */
int filter_estimate_begin(struct streams *streams, struct http_connection *connection,
                          const struct http_request *http, struct http_refusal *refusal,
                          enum token_fault *ret_fault);
