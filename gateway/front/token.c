/* token.c - splits and decodes a token, finds the issuer and its key, verifies the signature, then
 * reads the claims.
 *
 * Cheap checks come first. Nothing in the token is trusted before its signature is verified, except
 * the issuer and key that it names: the key is searched among those of that issuer only. Every
 * refusal is one of the faults in the header, for log and metrics; clients are told less. A token
 * has at most 8 kB. */
#include "gateway/front/token.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <jansson.h>

#include "base/base64url.h"
#include "base/buffer.h"
#include "base/hash.h"
#include "gateway/front/claims.h"
#include "gateway/front/token_policy_parts.h"

/* --- the parts ----------------------------------------------------------------------------- */

enum { PART_HEADER, PART_CLAIMS, PART_SIGNATURE, PART_COUNT };

struct token_parts {
    struct buffer bytes[PART_COUNT];
    struct sl_slice signed_text; /* header and claims as received */
};

static void token_parts_done(struct token_parts *parts)
{
    for (int i = 0; i < PART_COUNT; i++)
        buffer_done(&parts->bytes[i]);
}

static enum token_fault split(struct sl_slice jwt, struct token_parts *parts)
{
    const char *at = jwt.data, *end = jwt.data + jwt.size;

    for (int i = 0; i < PART_COUNT; i++) {
        const char *dot = memchr(at, '.', (size_t)(end - at));
        int r;

        if (!dot == (i < PART_SIGNATURE))
            return TOKEN_MALFORMED;
        if (i == PART_SIGNATURE) {
            parts->signed_text = sl_slice(jwt.data, (size_t)(at - 1 - jwt.data));
            dot = end;
        }
        r = base64url_decode(sl_slice(at, (size_t)(dot - at)), &parts->bytes[i]);
        if (r < 0)
            return r == -ENOMEM ? TOKEN_NO_MEMORY : TOKEN_MALFORMED;
        at = dot + 1;
    }
    return TOKEN_OK;
}

/* Parses an object without repeated members, in valid UTF-8 without U+0000. */
static enum token_fault parse(const struct buffer *bytes, json_t **ret_object)
{
    json_error_t error;
    json_t *json = json_loadb(bytes->data, bytes->size, JSON_REJECT_DUPLICATES, &error);

    if (!json)
        return json_error_code(&error) == json_error_out_of_memory ? TOKEN_NO_MEMORY
                                                                   : TOKEN_MALFORMED;
    if (!json_is_object(json)) {
        json_decref(json);
        return TOKEN_MALFORMED;
    }
    *ret_object = json;
    return TOKEN_OK;
}

static struct sl_slice string_slice(const json_t *string)
{
    return sl_slice(json_string_value(string), json_string_length(string));
}

/* --- issuer and key ----------------------------------------------------------------------- */

/* The issuer that the token names; NULL: unknown. */
static const struct issuer_keys *find_issuer(const struct token_policy *policy,
                                             const json_t *claims)
{
    const json_t *iss = json_object_get(claims, "iss");

    for (unsigned i = 0; json_is_string(iss) && i < policy->issuer_count; i++) {
        const char *name = policy->issuers[i].settings->name;

        if (name && sl_slice_is(string_slice(iss), name))
            return &policy->issuers[i];
    }
    return NULL;
}

/* If the token names none of our issuers, its key is searched among the keys that are valid for any
 * name; then among all others, none of which makes it valid: only if the signature is good may the
 * bearer be told that the issuer is wrong. */
static void choose_among(const struct token_policy *policy, const struct issuer_keys *named,
                         enum token_algorithm algorithm, struct sl_slice kid,
                         struct key_choice *choice)
{
    if (named) {
        issuer_keys_choose(named, algorithm, kid, choice);
        return;
    }
    if (!policy->own.name)
        issuer_keys_choose(&policy->issuers[0], algorithm, kid, choice);
    if (choice->called > 0)
        return;
    for (unsigned i = policy->own.name ? 0 : 1; i < policy->issuer_count; i++)
        issuer_keys_choose(&policy->issuers[i], algorithm, kid, choice);
}

static void tell_unknown(const struct token_policy *policy, const struct issuer_keys *named)
{
    if (policy->tell_unknown && named && named->settings->name)
        policy->tell_unknown(policy->unknown_context, named->settings->name);
}

/* Reads the header, and finds the key. */
static enum token_fault read_header(const struct token_policy *policy, const json_t *header,
                                    const json_t *claims, enum token_algorithm *ret_algorithm,
                                    struct key_choice *choice)
{
    const json_t *alg = json_object_get(header, "alg");
    const json_t *kid = json_object_get(header, "kid");
    const struct issuer_keys *named = find_issuer(policy, claims);

    if (json_object_get(header, "crit"))
        return TOKEN_CRITICAL_HEADER;
    if (!json_is_string(alg) || (kid && !json_is_string(kid)))
        return TOKEN_MALFORMED;
    if (!token_algorithm_find(string_slice(alg), ret_algorithm))
        return TOKEN_WRONG_ALGORITHM;
    choose_among(policy, named, *ret_algorithm, kid ? string_slice(kid) : SL_SLICE_NONE, choice);
    if (choice->called == 0) {
        tell_unknown(policy, named);
        if (named && issuer_keys_are_awaited(named))
            return TOKEN_NO_KEYS_YET;
    }
    if (choice->called == 0 || choice->fitting > 1)
        return TOKEN_UNKNOWN_KEY;
    return choice->fitting == 1 ? TOKEN_OK : TOKEN_WRONG_ALGORITHM;
}

/* --- the whole token ---------------------------------------------------------------------- */

static enum token_fault check_signature(const struct token_policy *policy,
                                        const struct token_parts *parts, const json_t *claims,
                                        struct key_choice *choice)
{
    enum token_algorithm algorithm;
    enum token_fault fault;
    json_t *header;
    int r;

    fault = parse(&parts->bytes[PART_HEADER], &header);
    if (fault != TOKEN_OK)
        return fault;
    fault = read_header(policy, header, claims, &algorithm, choice);
    json_decref(header);
    if (fault != TOKEN_OK)
        return fault;
    r = token_key_verify(choice->key, algorithm, parts->signed_text,
                         buffer_slice(&parts->bytes[PART_SIGNATURE]));
    return r == 0 ? TOKEN_OK : r == -ENOMEM ? TOKEN_NO_MEMORY : TOKEN_BAD_SIGNATURE;
}

/* Called after the signature was verified. */
static enum token_fault check_claims(const json_t *claims, const struct key_choice *choice,
                                     uint64_t now_ms, struct token *token)
{
    const struct issuer_settings *issuer = choice->issuer->settings;
    const json_t *iss = json_object_get(claims, "iss");
    enum token_fault fault;

    token_name(sl_slice_str(token_key_name(choice->key)), token->kid);
    token->key_number = token_key_number(choice->key);
    memcpy(token->issuer, choice->issuer->name, sizeof(token->issuer));
    fault = claims_read(&issuer->claims, claims, now_ms, token);
    if (fault != TOKEN_OK)
        return fault;
    if (issuer->name && !(json_is_string(iss) && sl_slice_is(string_slice(iss), issuer->name)))
        return TOKEN_WRONG_ISSUER;
    if (issuer->audiences.count > 0 &&
        !claims_name_audience(claims, issuer->audiences.items, issuer->audiences.count))
        return TOKEN_WRONG_AUDIENCE;
    return TOKEN_OK;
}

/* A token without a subject is identified by a hash of its signed part. The hash needs no key:
 * whoever could find two texts with the same hash cannot sign them. */
static void name_holder(struct token *token, struct sl_slice signed_text)
{
    const struct hash_key key = {0, 0};

    if (token->subject[0])
        memcpy(token->holder, token->subject, sizeof(token->holder));
    else
        snprintf(token->holder, sizeof(token->holder), "\x01token %016" PRIx64,
                 hash_slice(key, signed_text));
}

static enum token_fault check_parts(const struct token_policy *policy,
                                    const struct token_parts *parts, uint64_t now_ms,
                                    struct token *token)
{
    struct key_choice choice = {.key = NULL};
    enum token_fault fault;
    json_t *claims;

    fault = parse(&parts->bytes[PART_CLAIMS], &claims);
    if (fault != TOKEN_OK)
        return fault;
    fault = check_signature(policy, parts, claims, &choice);
    if (fault == TOKEN_OK)
        fault = check_claims(claims, &choice, now_ms, token);
    if (fault == TOKEN_OK)
        name_holder(token, parts->signed_text);
    json_decref(claims);
    return fault;
}

static bool has_key(const struct issuer_keys *issuer, const struct token *token)
{
    char name[TOKEN_NAME_SIZE];

    for (unsigned i = 0; i < issuer_keys_count(issuer); i++) {
        const struct token_key *key = issuer_keys_key(issuer, i);

        token_name(sl_slice_str(token_key_name(key)), name);
        if (strcmp(name, token->kid) == 0 &&
            (token->key_number == 0 || token->key_number == token_key_number(key)))
            return true;
    }
    return false;
}

enum token_fault token_check_key(const struct token_policy *policy, const struct token *token)
{
    for (unsigned i = 0; i < policy->issuer_count; i++) {
        const struct issuer_keys *issuer = &policy->issuers[i];

        if (strcmp(issuer->name, token->issuer) != 0)
            continue;
        if (has_key(issuer, token))
            return TOKEN_OK;
        tell_unknown(policy, issuer);
        return issuer_keys_are_awaited(issuer) ? TOKEN_NO_KEYS_YET : TOKEN_UNKNOWN_KEY;
    }
    return TOKEN_UNKNOWN_KEY;
}

enum token_fault token_check_signature(const struct token_policy *policy, struct sl_slice jws)
{
    struct token_parts parts = {.bytes = {BUFFER_INIT, BUFFER_INIT, BUFFER_INIT}};
    struct key_choice choice = {.key = NULL};
    enum token_fault fault = split(jws, &parts);

    if (fault == TOKEN_OK)
        fault = check_signature(policy, &parts, NULL, &choice);
    token_parts_done(&parts);
    return fault;
}

static enum token_fault check_anew(const struct token_policy *policy, struct sl_slice jwt,
                                   uint64_t now_ms, struct token *token)
{
    struct token_parts parts = {.bytes = {BUFFER_INIT, BUFFER_INIT, BUFFER_INIT}};
    enum token_fault fault = split(jwt, &parts);

    if (fault == TOKEN_OK)
        fault = check_parts(policy, &parts, now_ms, token);
    token_parts_done(&parts);
    return fault;
}

static void count(const struct token_policy *policy, enum metric metric)
{
    if (policy->metrics)
        metric_add(policy->metrics, metric, 1);
}

enum token_fault token_check(const struct token_policy *policy, struct sl_slice jwt,
                             uint64_t now_ms, struct token *ret_token)
{
    struct token token = {.subject = ""};
    enum token_fault fault = TOKEN_OK;
    struct token_hash hash;

    ret_token->bad_claim = NULL;
    if (jwt.size > TOKEN_MAX_BYTES)
        return TOKEN_MALFORMED;
    hash = token_memory_hash(jwt);
    if (token_memory_find(policy->memory, &hash, now_ms, &token)) {
        count(policy, METRIC_TOKENS_REMEMBERED);
    } else {
        fault = check_anew(policy, jwt, now_ms, &token);
        if (fault == TOKEN_OK) {
            token_memory_put(policy->memory, &hash, now_ms, &token);
            count(policy, METRIC_TOKENS_VERIFIED);
        }
    }
    if (fault == TOKEN_OK && token_is_revoked(policy, &token, now_ms))
        fault = TOKEN_REVOKED;
    if (fault == TOKEN_OK)
        *ret_token = token;
    ret_token->bad_claim = token.bad_claim;
    memcpy(ret_token->issuer, token.issuer, sizeof(token.issuer));
    memcpy(ret_token->kid, token.kid, sizeof(token.kid));
    return fault;
}

const char *token_fault_name(enum token_fault fault)
{
    static const char *const names[] = {
        [TOKEN_OK] = "ok",
        [TOKEN_MALFORMED] = "malformed",
        [TOKEN_CRITICAL_HEADER] = "critical_header",
        [TOKEN_WRONG_ALGORITHM] = "wrong_algorithm",
        [TOKEN_UNKNOWN_KEY] = "unknown_key",
        [TOKEN_NO_KEYS_YET] = "no_keys_yet",
        [TOKEN_BAD_SIGNATURE] = "bad_signature",
        [TOKEN_EXPIRED] = "expired",
        [TOKEN_NOT_YET_VALID] = "not_yet_valid",
        [TOKEN_WRONG_ISSUER] = "wrong_issuer",
        [TOKEN_WRONG_AUDIENCE] = "wrong_audience",
        [TOKEN_BAD_CLAIMS] = "bad_claims",
        [TOKEN_REVOKED] = "revoked",
        [TOKEN_NO_MEMORY] = "no_memory",
    };

    return names[fault];
}
