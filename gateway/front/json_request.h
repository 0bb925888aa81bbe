/* gateway/front/json_request.h - POST requests with JSON that do not belong to the API: checks the
 * token, then reads the object.
 *
 * Pure functions. For requests answered by the streams: estimates, tickets. */
#pragma once

#include <jansson.h>

#include "gateway/front/stream_request.h"

/* 0 fills *ret_token; -EPROTO: *refusal, and *ret_fault for log and metrics; -ENOMEM. */
int json_request_token(const struct front_settings *settings, const struct http_request *http,
                       uint64_t now_ms, struct token *ret_token, struct http_refusal *refusal,
                       enum token_fault *ret_fault);
/* Reads the body, an object. The caller owns *ret_json, even on failure. 0; -EPROTO; -ENOMEM. */
int json_request_body(const struct http_request *http, json_t **ret_json,
                      struct http_refusal *refusal);
