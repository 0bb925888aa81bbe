/* bearer.c - finds the token of a request, has it checked, and words the refusal.
 *
 * As long as the signature is not verified there is a single answer; after that the bearer is told
 * the reason. Rate limits are checked before anything else for an address, and after the token for
 * a subject. */
#include "gateway/front/bearer.h"

#include <errno.h>

#include "gateway/front/use_check.h"

#define INVALID "Bearer error=\"invalid_token\""

struct carried_token {
    struct sl_slice jwt;
    unsigned count; /* number of tokens in the request */
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

/* The reason of a refusal is only given if one of our keys has signed the token: otherwise the
 * client could be anybody. */
int bearer_refuse(enum token_fault fault, const struct token *token, struct http_refusal *refusal)
{
    static const struct {
        const char *message, *www_authenticate;
    } rows[TOKEN_FAULT_COUNT] = {
        [TOKEN_NOT_YET_VALID] = {"the token is not valid yet",
                                 INVALID ", error_description=\"not valid yet\""},
        [TOKEN_WRONG_ISSUER] = {"the token is from another issuer (iss)",
                                INVALID ", error_description=\"another issuer\""},
        [TOKEN_WRONG_AUDIENCE] = {"the token is for another audience (aud)",
                                  INVALID ", error_description=\"another audience\""},
        [TOKEN_BAD_CLAIMS] = {NULL, INVALID ", error_description=\"bad claims\""},
    };
    const char *message = rows[fault].message;

    if (fault == TOKEN_NO_KEYS_YET) {
        http_refuse(refusal, 503, "keys_unavailable", NULL,
                    "the keys of the token's issuer have not been fetched yet");
        refusal->retry_after_s = HTTP_RETRY_AFTER_S;
        return -EPROTO;
    }
    if (fault == TOKEN_EXPIRED) {
        http_refuse(refusal, 401, "token_expired", NULL, "the token has expired");
        refusal->www_authenticate = INVALID ", error_description=\"expired\"";
        return -EPROTO;
    }
    if (fault == TOKEN_REVOKED) {
        http_refuse(refusal, 401, "token_revoked", NULL, "the token was revoked");
        refusal->www_authenticate = INVALID ", error_description=\"revoked\"";
        return -EPROTO;
    }
    if (fault == TOKEN_BAD_CLAIMS)
        message = token->bad_claim;
    http_refuse(refusal, 401, "invalid_token", NULL, "%s",
                message ? message : "the token is not valid");
    refusal->www_authenticate = message ? rows[fault].www_authenticate : INVALID;
    return -EPROTO;
}

static int check_token(const struct token_policy *policy, const struct http_request *http,
                       struct sl_slice jwt, uint64_t now_ms, struct token *ret_token,
                       struct http_refusal *refusal, enum token_fault *ret_fault)
{
    enum token_fault fault = token_check(policy, jwt, now_ms, ret_token);

    if (fault == TOKEN_OK)
        return http->use ? use_check_subject(http->use, ret_token, refusal) : 0;
    if (fault == TOKEN_NO_MEMORY)
        return -ENOMEM;
    if (http->use)
        use_check_bad_token(http->use);
    *ret_fault = fault;
    return bearer_refuse(fault, ret_token, refusal);
}

bool bearer_is_there(const struct http_request *http, struct sl_slice parameter)
{
    return find_token(http, parameter).count > 0;
}

int bearer_refuse_two(struct http_refusal *refusal)
{
    int r = http_refuse(refusal, 400, "too_many_tokens", NULL, "the request carries two tokens");

    refusal->www_authenticate = "Bearer error=\"invalid_request\"";
    return r;
}

int bearer_check_token(const struct token_policy *policy, const struct http_request *http,
                       struct sl_slice jwt, uint64_t now_ms, struct token *ret_token,
                       struct http_refusal *refusal, enum token_fault *ret_fault)
{
    int r = http->use ? use_check_address(http->use, refusal) : 0;

    return r < 0 ? r : check_token(policy, http, jwt, now_ms, ret_token, refusal, ret_fault);
}

int bearer_check(const struct token_policy *policy, const struct http_request *http,
                 struct sl_slice parameter, uint64_t now_ms, struct token *ret_token,
                 struct http_refusal *refusal, enum token_fault *ret_fault)
{
    struct carried_token carried = find_token(http, parameter);
    int r = http->use ? use_check_address(http->use, refusal) : 0;

    if (r < 0)
        return r;
    if (carried.count > 1)
        return bearer_refuse_two(refusal);
    if (carried.count == 0) {
        r = http_refuse(refusal, 401, "no_token", NULL,
                        "a token is required: Authorization: Bearer");
        refusal->www_authenticate = "Bearer";
        return r;
    }
    return check_token(policy, http, carried.jwt, now_ms, ret_token, refusal, ret_fault);
}
