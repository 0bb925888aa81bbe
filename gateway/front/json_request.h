/* gateway/front/json_request.h - a POST of JSON beside the API: its token, then its object.
 *
 * Pure. For what is answered by the streams: estimates, tickets. */
#pragma once

#include <jansson.h>

#include "gateway/front/stream_request.h"

/* 0 fills *ret_token; -EPROTO: *refusal, and *ret_fault for log and metrics; -ENOMEM. */
int json_request_token(const struct front_settings *settings, const struct http_request *http,
                       uint64_t now_ms, struct token *ret_token, struct http_refusal *refusal,
                       enum token_fault *ret_fault);
/* The body, an object: *ret_json is the caller's, whatever is returned. 0; -EPROTO; -ENOMEM. */
int json_request_body(const struct http_request *http, json_t **ret_json,
                      struct http_refusal *refusal);
