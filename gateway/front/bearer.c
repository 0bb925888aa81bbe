#include "gateway/front/bearer.h"

#include <errno.h>

struct carried_token {
    struct sl_slice jwt;
    unsigned count; /* of tokens in the request */
};

static void carry(struct carried_token *token, struct sl_slice jwt)
{
    token->jwt = jwt;
    token->count++;
}

static struct carried_token find_token(const struct http_request *http, struct sl_slice parameter)
{
    struct sl_slice authorization = http_trim(http->authorization);
    struct sl_slice protocols = http->is_upgrade ? http->protocols : SL_SLICE_NONE;
    struct carried_token token = {SL_SLICE_NONE, 0};
    size_t scheme_size = sizeof("Bearer") - 1;

    if (authorization.size > scheme_size && authorization.data[scheme_size] == ' ' &&
        http_token_is(sl_slice(authorization.data, scheme_size), "Bearer"))
        carry(&token, http_trim(sl_slice_from(authorization, scheme_size)));
    if (parameter.data)
        carry(&token, parameter);
    while (protocols.size > 0) {
        struct sl_slice protocol = http_next_element(&protocols, ',');

        if (sl_slice_starts_with(protocol, SL_SLICE("bearer.")))
            carry(&token, sl_slice_from(protocol, sizeof("bearer.") - 1));
    }
    return token;
}

/* One text for all causes: what is wrong with a token is for the log, not for who made it. */
int bearer_check(const struct token_policy *policy, const struct http_request *http,
                 struct sl_slice parameter, uint64_t now_ms, struct token *ret_token,
                 struct http_refusal *refusal, enum token_fault *ret_fault)
{
    struct carried_token carried = find_token(http, parameter);
    enum token_fault fault;
    int r;

    if (carried.count > 1) {
        r = http_refuse(refusal, 400, "too_many_tokens", NULL, "the request carries two tokens");
        refusal->www_authenticate = "Bearer error=\"invalid_request\"";
        return r;
    }
    if (carried.count == 0) {
        r = http_refuse(refusal, 401, "no_token", NULL,
                        "this needs a token: Authorization: Bearer");
        refusal->www_authenticate = "Bearer";
        return r;
    }
    fault = token_check(policy, carried.jwt, now_ms, ret_token);
    if (fault == TOKEN_OK)
        return 0;
    if (fault == TOKEN_NO_MEMORY)
        return -ENOMEM;
    *ret_fault = fault;
    r = http_refuse(refusal, 401, "invalid_token", NULL, "the token is not valid");
    refusal->www_authenticate = "Bearer error=\"invalid_token\"";
    return r;
}
