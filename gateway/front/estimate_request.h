/* gateway/front/estimate_request.h - parses and checks a request for an estimate of a filter.
 *
 *     {"filter":{"track":"coffee,tea"},"since":"-10m"}
 *
 * Pure functions. The filter is one of /v1/stream, needs the same scope and obeys the same limits,
 * except that `lang:` and `country:` alone are allowed. Checked in this order: the token, the body,
 * the filter, the scope. */
#pragma once

#include <jansson.h>

#include "gateway/front/filter_json.h"
#include "gateway/front/stream_request.h"

struct estimate_request {
    struct token token;
    json_t *json; /* owns the bytes of `text` */
    struct sl_filter_text text;
    struct sl_filter_limits limits; /* with which it was accepted */
    struct sl_filter *filter;
    struct sl_filter_warnings warnings;
    uint64_t from; /* events after this id are examined; 0: not given */
};

enum { ESTIMATE_SINCE_MS = 3600000 }; /* how far back the request may reach */

/* 0: call estimate_request_done() at the end; -EPROTO: *refusal, and *ret_fault for log and
 * metrics; -ENOMEM. `now_ms`: Unix time. */
int estimate_request_read(const struct front_settings *settings, const struct http_request *http,
                          uint64_t now_ms, struct estimate_request *ret_request,
                          struct http_refusal *refusal, enum token_fault *ret_fault);
void estimate_request_done(struct estimate_request *request);
