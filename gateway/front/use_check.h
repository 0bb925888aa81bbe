/* gateway/front/use_check.h - limits requests by what their address and their subject have used.
 * All requests for streams and of the API are counted and checked here.
 *
 * The router creates a check for each request and attaches it; bearer_check() calls it, first for
 * the address, before a signature is verified, and then for the token's subject. A request without
 * a check is not counted.
 *
 * What is left of the subject's limits is sent in the headers RateLimit-Policy and RateLimit
 * (draft-ietf-httpapi-ratelimit-headers-10); and for clients of X's API in x-rate-limit-limit,
 * -remaining and -reset (Unix time in seconds), for the rate in which the request counts. */
#pragma once

#include "base/buffer.h"
#include "gateway/front/fair_use.h"
#include "gateway/front/token.h"
#include "gateway/http/http.h"

enum use_asks {
    USE_ASKS_LATER,   /* its body has not arrived: it is checked and counted when it has */
    USE_ASKS_STREAM,  /* a request for a stream */
    USE_ASKS_REQUEST, /* of the API */
};

struct use_check {
    struct fair_use *uses;
    const struct use_limits *of_subject, *of_address; /* configured in the server */
    enum use_asks asks;
    struct sl_slice address; /* as counted: use_prefix(); empty: not counted */
    struct use_times times;
    struct buffer *headers; /* of the response */
    enum use refused;       /* by which limit; USE_COUNT: not refused */
    bool tells_x;           /* also send x-rate-limit-... */
    bool has_told_x;        /* they were sent */
};

/* 0; -EPROTO: *refusal is a 429. */
int use_check_address(struct use_check *check, struct http_refusal *refusal);
/* Counts an invalid token. */
void use_check_bad_token(struct use_check *check);
/* Like use_check_address() for the token's subject; appends headers in any case. */
int use_check_subject(struct use_check *check, const struct token *token,
                      struct http_refusal *refusal);
/* Whether the subject may replay events. */
int use_check_replay(struct use_check *check, const struct token *token,
                     struct http_refusal *refusal);

/* For a refusal with 429: sends x-rate-limit-reset, unless it was sent. */
void use_check_tell_reset(struct use_check *check, unsigned retry_after_s);

/* The limits for the token: those of the server, or its own. */
struct use_limits use_limits_of(const struct use_limits *server, const struct token *token);

/* The time until the next day begins. */
static inline uint64_t use_day_left_ms(uint64_t wall_ms)
{
    return USE_DAY_MS - wall_ms % USE_DAY_MS;
}
