/* fuzz/front.h - what the fuzzers of requests and tokens share: a secret, and what is signed with
 * it. */
#pragma once

#include "base/buffer.h"
#include "base/slice.h"
#include "gateway/front/token.h"
#include "gateway/http/http.h"

/* One that accepts what front_sign() makes, for as long as the program runs. */
struct token_policy *front_policy(struct token_policy_settings settings);

/* Appends header and claims as a token, signed well. */
void front_sign(struct sl_slice header, struct sl_slice claims, struct buffer *jwt);

/* Is the refusal's body the JSON that was promised? */
void front_check_body(const struct http_refusal *refusal);
