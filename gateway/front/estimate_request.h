/* gateway/front/estimate_request.h - a request for an estimate of a filter, understood and
 * permitted, or refused.
 *
 *     {"filter":{"track":"coffee,tea"},"since":"-10m"}
 *
 * Pure. The filter is one of /v1/stream, for the same scope and within the same limits, but that
 * `lang:` and `country:` alone are allowed. Checked in this order: the token, the body, the filter,
 * the scope. */
#pragma once

#include <jansson.h>

#include "gateway/front/filter_json.h"
#include "gateway/front/stream_request.h"

struct estimate_request {
    struct token token;
    json_t *json; /* what `text` points into */
    struct sl_filter_text text;
    struct sl_filter_limits limits; /* those that it was accepted with */
    struct sl_filter *filter;
    struct sl_filter_warnings warnings;
    uint64_t from; /* what has happened behind this id is looked at; 0: not said */
};

enum { ESTIMATE_SINCE_MS = 3600000 }; /* how far back it may look */

/* 0: end it with estimate_request_done(); -EPROTO: *refusal, and *ret_fault for log and metrics;
 * -ENOMEM. `now_ms`: Unix time. */
int estimate_request_read(const struct front_settings *settings, const struct http_request *http,
                          uint64_t now_ms, struct estimate_request *ret_request,
                          struct http_refusal *refusal, enum token_fault *ret_fault);
void estimate_request_done(struct estimate_request *request);
