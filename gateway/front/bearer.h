/* gateway/front/bearer.h - finds and checks the token of a request, and the request rate. */
#pragma once

#include <stdint.h>

#include "gateway/front/token.h"
#include "gateway/http/http.h"

/* Looks at Authorization, at `parameter` (the value of access_token; absent: none) and, for an
 * upgrade, at the subprotocols; and at http->use, which may refuse too many requests. 0 sets
 * *ret_token; -EPROTO: respond with *refusal; *ret_fault, otherwise unchanged, is for log and
 * metrics; -ENOMEM. */
int bearer_check(const struct token_policy *policy, const struct http_request *http,
                 struct sl_slice parameter, uint64_t now_ms, struct token *ret_token,
                 struct http_refusal *refusal, enum token_fault *ret_fault);

/* The same for a token that was already found. */
int bearer_check_token(const struct token_policy *policy, const struct http_request *http,
                       struct sl_slice jwt, uint64_t now_ms, struct token *ret_token,
                       struct http_refusal *refusal, enum token_fault *ret_fault);
/* Whether there is a token where bearer_check() looks. */
bool bearer_is_there(const struct http_request *http, struct sl_slice parameter);
/* Fills *refusal with what the bearer of such a token is told. Returns -EPROTO. */
int bearer_refuse(enum token_fault fault, const struct token *token, struct http_refusal *refusal);
/* Fills *refusal: there are two tokens. Returns -EPROTO. */
int bearer_refuse_two(struct http_refusal *refusal);
