/* gateway/front/bearer.h - who asks? The token of a request, wherever it stands, and whether it is
 * good, and may ask so often. */
#pragma once

#include <stdint.h>

#include "gateway/front/token.h"
#include "gateway/http/http.h"

/* Looks at Authorization, at `parameter` (the value of access_token; absent: none) and, for an
 * upgrade, at the subprotocols; and at http->use, which may refuse whoever asks too much. 0 fills
 * *ret_token; -EPROTO: *refusal is the answer, and *ret_fault, which is left alone otherwise, is
 * for log and metrics; -ENOMEM. */
int bearer_check(const struct token_policy *policy, const struct http_request *http,
                 struct sl_slice parameter, uint64_t now_ms, struct token *ret_token,
                 struct http_refusal *refusal, enum token_fault *ret_fault);

/* The same for a token that has been found. */
int bearer_check_token(const struct token_policy *policy, const struct http_request *http,
                       struct sl_slice jwt, uint64_t now_ms, struct token *ret_token,
                       struct http_refusal *refusal, enum token_fault *ret_fault);
/* Is there any token, where bearer_check() looks for them? */
bool bearer_is_there(const struct http_request *http, struct sl_slice parameter);
/* Fills *refusal with what the bearer of such a token is told. Returns -EPROTO. */
int bearer_refuse(enum token_fault fault, const struct token *token, struct http_refusal *refusal);
/* Fills *refusal: there are two that say who asks. Returns -EPROTO. */
int bearer_refuse_two(struct http_refusal *refusal);
