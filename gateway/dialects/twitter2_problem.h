/* gateway/dialects/twitter2_problem.h - refusals in the format of X's API 2:
 * application/problem+json.
 *
 *     {"type":"https://api.x.com/2/problems/invalid-request","title":"Invalid Request","detail":
 *      "One or more parameters to your request was invalid.","status":400,"errors":[{"message":
 *      "...","parameters":{"partition":["21"]}}]} */
#pragma once

#include <jansson.h>

#include "base/buffer.h"
#include "gateway/front/disconnect.h"
#include "gateway/http/http.h"
#include "gateway/http/http_answer.h"

#define TWITTER2_PROBLEMS "https://api.x.com/2/problems/"

/* `http` is the refused request, whose parameters are repeated. See dialect.refuse(). */
void twitter2_refuse(const struct http_request *http, const struct http_refusal *refusal,
                     struct buffer *ret_body, struct http_answer *ret_answer);
/* The last message of a stream, with the reason of its end:
 * {"errors":[{"title":"operational-disconnect","disconnect_type":"SlowReader",...}]}. See
 * dialect.disconnect(). */
void twitter2_disconnect(enum disconnect_reason why, struct buffer *ret_json);
