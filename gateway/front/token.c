/* token.c - splits, decodes, verifies, then reads: a policy is the keys and whom tokens must come
 * from.
 *
 * The cheap checks come first, and nothing that the token says is believed before its signature is
 * good, except which key it claims. Keys, one secret and up to as many public ones as were
 * configured, are looked through in order. Every refusal is one of the faults in the header, for
 * the log and the metrics; clients are told less. A token has at most 8 kB. */
#include "gateway/front/token.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/base64url.h"
#include "base/hash.h"
#include "gateway/front/token_key.h"
#include "src/model/id.h"

#define LATEST_MS (UINT64_C(1) << 53) /* for times that make no sense; exact as a double */

struct token_policy {
    struct token_key **keys;
    unsigned key_count;
    char *issuer, *audience;     /* NULL: not checked */
    token_revoked_fn is_revoked; /* NULL: nobody knows */
    void *revoked_context;
};

/* --- the policy ---------------------------------------------------------------------------- */

void token_policy_free(struct token_policy *policy)
{
    if (!policy)
        return;
    for (unsigned i = 0; i < policy->key_count; i++)
        token_key_free(policy->keys[i]);
    mem_free(policy->keys);
    mem_free(policy->issuer);
    mem_free(policy->audience);
    mem_free(policy);
}

static bool share_an_algorithm(const struct token_key *a, const struct token_key *b)
{
    for (int i = 0; i < TOKEN_ALGORITHM_COUNT; i++) {
        if (token_key_takes(a, (enum token_algorithm)i) &&
            token_key_takes(b, (enum token_algorithm)i))
            return true;
    }
    return false;
}

/* `kid` must be able to choose. */
static int check_names(const struct token_policy *policy, struct failure *reterr)
{
    for (unsigned i = 0; i < policy->key_count; i++) {
        const char *name = token_key_name(policy->keys[i]);

        for (unsigned j = 0; j < i; j++) {
            if (token_key_is_called(policy->keys[j], sl_slice_str(name)) &&
                share_an_algorithm(policy->keys[i], policy->keys[j]))
                return failure_set(reterr, -EEXIST, "two keys are called '%s'", name);
        }
    }
    return 0;
}

static int copy_text(const char *text, char **ret_copy)
{
    if (!text || !*text)
        return 0;
    *ret_copy = mem_strndup(text, strlen(text));
    return *ret_copy ? 0 : -ENOMEM;
}

static int read_keys(struct token_policy *policy, const struct token_policy_settings *settings,
                     struct failure *reterr)
{
    int r;

    policy->keys =
        mem_alloc(mem_array_size((size_t)settings->public_key_count + 1, sizeof(policy->keys[0])));
    if (!policy->keys)
        return -ENOMEM;
    if (settings->secret_file) {
        r = token_key_read_secret(settings->secret_file, &policy->keys[0], reterr);
        if (r < 0)
            return r;
        policy->key_count++;
    }
    for (unsigned i = 0; i < settings->public_key_count; i++) {
        r = token_key_read_public(settings->public_key_files[i], &policy->keys[policy->key_count],
                                  reterr);
        if (r < 0)
            return r;
        policy->key_count++;
    }
    return check_names(policy, reterr);
}

int token_policy_new(const struct token_policy_settings *settings, struct token_policy **ret_policy,
                     struct failure *reterr)
{
    struct token_policy *policy = mem_zalloc(sizeof(*policy));
    int r;

    if (!policy)
        return failure_set(reterr, -ENOMEM, "out of memory");
    r = copy_text(settings->issuer, &policy->issuer);
    if (r == 0)
        r = copy_text(settings->audience, &policy->audience);
    if (r == 0)
        r = read_keys(policy, settings, reterr);
    if (r == 0) {
        *ret_policy = policy;
        return 0;
    }
    if (r == -ENOMEM)
        failure_set(reterr, r, "out of memory");
    token_policy_free(policy);
    return r;
}

const char *token_policy_warning(const struct token_policy *policy, unsigned n)
{
    if (policy->key_count == 0 && n == 0)
        return "no key is configured: every token will be refused";
    for (unsigned i = 0; i < policy->key_count; i++) {
        const char *warning = token_key_warning(policy->keys[i]);

        if (warning && n-- == 0)
            return warning;
    }
    return NULL;
}

/* --- the parts ----------------------------------------------------------------------------- */

enum { PART_HEADER, PART_CLAIMS, PART_SIGNATURE, PART_COUNT };

struct token_parts {
    struct buffer bytes[PART_COUNT];
    struct sl_slice signed_text; /* header and claims, as they came */
};

static void token_parts_done(struct token_parts *parts)
{
    for (int i = 0; i < PART_COUNT; i++)
        buffer_done(&parts->bytes[i]);
}

static enum token_fault split(struct sl_slice jwt, struct token_parts *parts)
{
    const char *at = jwt.data, *end = jwt.data + jwt.size;

    if (jwt.size > TOKEN_MAX_BYTES)
        return TOKEN_MALFORMED;
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

/* An object without repeated members, in valid UTF-8 without U+0000. */
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

/* --- the header ---------------------------------------------------------------------------- */

static enum token_fault choose_key(const struct token_policy *policy,
                                   enum token_algorithm algorithm, const json_t *kid,
                                   const struct token_key **ret_key)
{
    unsigned called = 0, fitting = 0;

    for (unsigned i = 0; i < policy->key_count; i++) {
        const struct token_key *key = policy->keys[i];

        if (kid && !token_key_is_called(key, string_slice(kid)))
            continue;
        called++;
        if (!token_key_takes(key, algorithm))
            continue;
        fitting++;
        *ret_key = key;
    }
    if (called == 0 || fitting > 1)
        return TOKEN_UNKNOWN_KEY;
    return fitting == 1 ? TOKEN_OK : TOKEN_WRONG_ALGORITHM;
}

static enum token_fault read_header(const struct token_policy *policy, const json_t *header,
                                    enum token_algorithm *ret_algorithm,
                                    const struct token_key **ret_key)
{
    const json_t *alg = json_object_get(header, "alg");
    const json_t *kid = json_object_get(header, "kid");

    if (json_object_get(header, "crit"))
        return TOKEN_CRITICAL_HEADER;
    if (!json_is_string(alg) || (kid && !json_is_string(kid)))
        return TOKEN_MALFORMED;
    if (!token_algorithm_find(string_slice(alg), ret_algorithm))
        return TOKEN_WRONG_ALGORITHM;
    return choose_key(policy, *ret_algorithm, kid, ret_key);
}

/* --- the claims ---------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum token_scope scope;
} scopes[] = {
#define SCOPE(symbol, name) {name, TOKEN_SCOPE_##symbol},
#include "src/model/token.def"
};

static unsigned scope_of(struct sl_slice name)
{
    for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
        if (sl_slice_is(name, scopes[i].name))
            return scopes[i].scope;
    }
    return 0;
}

static bool read_scope(const json_t *scope, struct token *token)
{
    const char *at;

    if (!scope)
        return true;
    if (!json_is_string(scope))
        return false;
    for (at = json_string_value(scope); *at; at += strspn(at, " ")) {
        size_t size = strcspn(at, " ");

        token->scopes |= scope_of(sl_slice(at, size));
        at += size;
    }
    return true;
}

static bool read_subject(const json_t *sub, struct token *token)
{
    if (!sub)
        return true;
    if (!json_is_string(sub) || json_string_length(sub) == 0 ||
        json_string_length(sub) >= TOKEN_SUBJECT_SIZE)
        return false;
    strcpy(token->subject, json_string_value(sub));
    return true;
}

static const struct {
    const char *name;
    size_t offset; /* of a uint32_t in struct sl_filter_limits */
    bool is_percent;
} limits[] = {
#define LIMIT(field, name)   {name, offsetof(struct sl_filter_limits, field), false},
#define PERCENT(field, name) {name, offsetof(struct sl_filter_limits, field), true},
#include "src/model/token.def"
};

static bool read_limit(const char *name, const json_t *value, struct sl_filter_limits *ret_limits)
{
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        uint32_t *limit = (uint32_t *)(void *)((char *)ret_limits + limits[i].offset);

        if (strcmp(name, limits[i].name) != 0)
            continue;
        if (limits[i].is_percent) {
            double percent = json_number_value(value);

            if (!json_is_number(value) || percent < 0 || percent > 100)
                return false;
            *limit = (uint32_t)(percent * 10000 + 1e-6); /* 0.0003 is a little less than that */
            return true;
        }
        if (!json_is_integer(value) || json_integer_value(value) < 0 ||
            json_integer_value(value) > UINT32_MAX)
            return false;
        *limit = (uint32_t)json_integer_value(value);
        return true;
    }
    return false;
}

static const struct {
    const char *name;
    enum use use;
} uses[] = {
#define USE(symbol, name) {name, USE_##symbol},
#include "src/model/token.def"
};

static bool read_use(const char *name, const json_t *value, struct token *token)
{
    json_int_t number = json_integer_value(value);

    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
        if (strcmp(name, uses[i].name) != 0)
            continue;
        if (!json_is_integer(value) || number < 0 || (uint64_t)number > SL_ID_MAX)
            return false;
        token->uses[uses[i].use] = (uint64_t)number + 1;
        return true;
    }
    return false;
}

static bool read_limits(json_t *lim, struct token *token)
{
    const char *name;
    json_t *value;

    token->limits = SL_FILTER_LIMITS_DEFAULT;
    if (!lim)
        return true;
    if (!json_is_object(lim))
        return false;
    json_object_foreach(lim, name, value)
    {
        if (!read_limit(name, value, &token->limits) && !read_use(name, value, token))
            return false;
    }
    return true;
}

static enum token_fault bad_claim(struct token *token, const char *which)
{
    token->bad_claim = which;
    return TOKEN_BAD_CLAIMS;
}

/* What revocations go by. A number is as good a name as its digits. */
static bool read_jti(const json_t *jti, struct token *token)
{
    if (json_is_integer(jti))
        snprintf(token->jti, sizeof(token->jti), "%" JSON_INTEGER_FORMAT, json_integer_value(jti));
    else if (json_is_string(jti))
        token_name(string_slice(jti), token->jti);
    return !jti || json_is_integer(jti) || json_is_string(jti);
}

static bool read_iat(const json_t *iat, struct token *token)
{
    double issued_ms = json_number_value(iat) * 1000;

    if (issued_ms >= 1)
        token->issued_ms = issued_ms < (double)LATEST_MS ? (uint64_t)issued_ms : LATEST_MS;
    return !iat || json_is_number(iat);
}

static enum token_fault check_times(const json_t *claims, uint64_t now_ms, struct token *token)
{
    const json_t *exp = json_object_get(claims, "exp");
    const json_t *nbf = json_object_get(claims, "nbf");
    double now_s = (double)now_ms / 1000;
    double end_ms;

    if (!json_is_number(exp))
        return bad_claim(token, "the token's exp is not there or is no number of Unix seconds");
    if (nbf && !json_is_number(nbf))
        return bad_claim(token, "the token's nbf is no number of Unix seconds");
    end_ms = (json_number_value(exp) + TOKEN_LEEWAY_S) * 1000;
    if (end_ms <= (double)now_ms)
        return TOKEN_EXPIRED;
    if (nbf && json_number_value(nbf) - TOKEN_LEEWAY_S > now_s)
        return TOKEN_NOT_YET_VALID;
    token->expires_ms = end_ms < (double)LATEST_MS ? (uint64_t)end_ms : LATEST_MS;
    return TOKEN_OK;
}

static bool names_audience(const json_t *aud, struct sl_slice audience)
{
    if (json_is_string(aud))
        return sl_slice_equal(string_slice(aud), audience);
    for (size_t i = 0; i < json_array_size(aud); i++) {
        const json_t *one = json_array_get(aud, i);

        if (json_is_string(one) && sl_slice_equal(string_slice(one), audience))
            return true;
    }
    return false;
}

static enum token_fault read_claims(const struct token_policy *policy, const json_t *claims,
                                    uint64_t now_ms, struct token *token)
{
    const json_t *iss = json_object_get(claims, "iss");
    enum token_fault fault;

    if (!read_subject(json_object_get(claims, "sub"), token))
        return bad_claim(token, "the token's sub is no text of 1 to 64 bytes: \"42\", not 42");
    if (!read_scope(json_object_get(claims, "scope"), token))
        return bad_claim(token, "the token's scope is no text of names between spaces: a list is "
                                "not taken");
    if (!read_limits(json_object_get(claims, "lim"), token))
        return bad_claim(token, "the token's lim has a limit that is not known, or no number");
    if (!read_jti(json_object_get(claims, "jti"), token))
        return bad_claim(token, "the token's jti is no text");
    if (!read_iat(json_object_get(claims, "iat"), token))
        return bad_claim(token, "the token's iat is no number of Unix seconds");
    fault = check_times(claims, now_ms, token);
    if (fault != TOKEN_OK)
        return fault;
    if (policy->issuer && !(json_is_string(iss) && sl_slice_is(string_slice(iss), policy->issuer)))
        return TOKEN_WRONG_ISSUER;
    if (policy->audience &&
        !names_audience(json_object_get(claims, "aud"), sl_slice_str(policy->audience)))
        return TOKEN_WRONG_AUDIENCE;
    return TOKEN_OK;
}

/* --- all of it ----------------------------------------------------------------------------- */

static enum token_fault check_signature(const struct token_policy *policy,
                                        const struct token_parts *parts, struct token *token)
{
    const struct token_key *key = NULL;
    enum token_algorithm algorithm;
    enum token_fault fault;
    json_t *header;
    int r;

    fault = parse(&parts->bytes[PART_HEADER], &header);
    if (fault != TOKEN_OK)
        return fault;
    fault = read_header(policy, header, &algorithm, &key);
    json_decref(header);
    if (fault != TOKEN_OK)
        return fault;
    r = token_key_verify(key, algorithm, parts->signed_text,
                         buffer_slice(&parts->bytes[PART_SIGNATURE]));
    token_name(sl_slice_str(token_key_name(key)), token->kid);
    token_name(sl_slice_str(policy->issuer ? policy->issuer : ""), token->issuer);
    return r == 0 ? TOKEN_OK : r == -ENOMEM ? TOKEN_NO_MEMORY : TOKEN_BAD_SIGNATURE;
}

/* A token without a subject is one by itself, by what is signed of it. No key is needed: who could
 * find two with one hash cannot sign them. */
static void name_holder(struct token *token, struct sl_slice signed_text)
{
    const struct hash_key key = {0, 0};

    if (token->subject[0])
        memcpy(token->holder, token->subject, sizeof(token->holder));
    else
        snprintf(token->holder, sizeof(token->holder), "\x01token %016" PRIx64,
                 hash_slice(key, signed_text));
}

void token_policy_set_revoked(struct token_policy *policy, token_revoked_fn is_revoked,
                              void *context)
{
    policy->is_revoked = is_revoked;
    policy->revoked_context = context;
}

bool token_is_revoked(const struct token_policy *policy, const struct token *token, uint64_t now_ms)
{
    return policy->is_revoked && policy->is_revoked(policy->revoked_context, token, now_ms);
}

enum token_fault token_check(const struct token_policy *policy, struct sl_slice jwt,
                             uint64_t now_ms, struct token *ret_token)
{
    struct token_parts parts = {.bytes = {BUFFER_INIT, BUFFER_INIT, BUFFER_INIT}};
    struct token token = {.subject = ""};
    enum token_fault fault;
    json_t *claims;

    fault = split(jwt, &parts);
    if (fault == TOKEN_OK)
        fault = check_signature(policy, &parts, &token);
    if (fault == TOKEN_OK)
        fault = parse(&parts.bytes[PART_CLAIMS], &claims);
    if (fault == TOKEN_OK) {
        fault = read_claims(policy, claims, now_ms, &token);
        json_decref(claims);
    }
    if (fault == TOKEN_OK)
        name_holder(&token, parts.signed_text);
    token_parts_done(&parts);
    if (fault == TOKEN_OK && token_is_revoked(policy, &token, now_ms))
        fault = TOKEN_REVOKED;
    if (fault == TOKEN_OK)
        *ret_token = token;
    ret_token->bad_claim = token.bad_claim;
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
