/* gateway/front/use_check.h - may this request be served, by what its address and its subject have
 * used? Here all requests are counted and judged: those for streams, and those of the API.
 *
 * The router makes a check for each request and hangs it into it; bearer_check() asks it, first for
 * the address, before anything is spent on a signature, and then for the token's subject. A request
 * without a check is not counted.
 *
 * What is left of the subject's limits is said by the headers RateLimit-Policy and RateLimit, as
 * draft-ietf-httpapi-ratelimit-headers-10 has them; and where the clients are X's, by
 * x-rate-limit-limit, -remaining and -reset (Unix time in seconds), of the rate that it counts in.
 */
#pragma once

#include "base/buffer.h"
#include "gateway/front/fair_use.h"
#include "gateway/front/token.h"
#include "gateway/http/http.h"

enum use_asks {
    USE_ASKS_LATER,   /* its body has not come: it is judged, and counted when it has */
    USE_ASKS_STREAM,  /* a connect */
    USE_ASKS_REQUEST, /* of the API */
};

struct use_check {
    struct fair_use *uses;
    const struct use_limits *of_subject, *of_address; /* the server's */
    enum use_asks asks;
    struct sl_slice address; /* as it counts: use_prefix(); empty: it does not */
    struct use_times times;
    struct buffer *headers; /* of the answer */
    enum use refused;       /* by which limit; USE_COUNT: by none */
    bool tells_x;           /* x-rate-limit-..., too */
    bool has_told_x;        /* it has */
};

/* 0; -EPROTO: *refusal says 429. */
int use_check_address(struct use_check *check, struct http_refusal *refusal);
/* The token was not good. */
void use_check_bad_token(struct use_check *check);
/* The same as use_check_address() for whose the token is; appends headers in any case. */
int use_check_subject(struct use_check *check, const struct token *token,
                      struct http_refusal *refusal);
/* May the subject be told again what has passed? */
int use_check_replay(struct use_check *check, const struct token *token,
                     struct http_refusal *refusal);

/* It is refused with 429: whoever waits for x-rate-limit-reset is told when, unless it was. */
void use_check_tell_reset(struct use_check *check, unsigned retry_after_s);

/* What holds for the token: the server's limits, or its own. */
struct use_limits use_limits_of(const struct use_limits *server, const struct token *token);

/* Until the next day begins. */
static inline uint64_t use_day_left_ms(uint64_t wall_ms)
{
    return USE_DAY_MS - wall_ms % USE_DAY_MS;
}
