/* fuzz/front.h - what the fuzzers of requests and tokens share: a secret, and signing with it. */
#pragma once

#include "base/buffer.h"
#include "base/slice.h"
#include "gateway/front/token.h"
#include "gateway/http/http.h"

/* A policy that accepts what front_sign() makes; valid as long as the program runs. */
struct token_policy *front_policy(struct token_policy_settings settings);

/* Appends header and claims as a correctly signed token. */
void front_sign(struct sl_slice header, struct sl_slice claims, struct buffer *jwt);

/* Checks that the refusal's body is JSON of the documented form. */
void front_check_body(const struct http_refusal *refusal);
