/* token_words.c - calls token_check(), then reads header and claims again for the explanation.
 *
 * Texts of the token are written as JSON in ASCII, so that they cannot control a terminal. The
 * explanation of a token of TOKEN_MAX_BYTES has some kilobytes, and a line for each key of its
 * issuer. */
#include "gateway/front/token_words.h"

#include <inttypes.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/base64url.h"
#include "base/clock.h"
#include "gateway/front/token_policy_parts.h"

struct parts {
    json_t *header, *claims; /* NULL: not readable */
};

static json_t *read_part(struct sl_slice jwt, unsigned which)
{
    struct buffer bytes = BUFFER_INIT;
    json_t *json = NULL;
    const char *dot;

    for (; which > 0; which--) {
        dot = memchr(jwt.data, '.', jwt.size);
        jwt = dot ? sl_slice_from(jwt, (size_t)(dot + 1 - jwt.data)) : sl_slice(jwt.data, 0);
    }
    dot = jwt.size > 0 ? memchr(jwt.data, '.', jwt.size) : NULL;
    if (dot && base64url_decode(sl_slice(jwt.data, (size_t)(dot - jwt.data)), &bytes) == 0)
        json = json_loadb(bytes.data ? bytes.data : "", bytes.size, JSON_REJECT_DUPLICATES, NULL);
    buffer_done(&bytes);
    if (!json_is_object(json)) {
        json_decref(json);
        return NULL;
    }
    return json;
}

/* --- values --- */

static void append_json(struct buffer *words, const json_t *value)
{
    char *text =
        value ? json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT) : NULL;

    buffer_append_str(words, text ? text : "nothing");
    free(text);
}

static void append_text(struct buffer *words, const char *text)
{
    json_t *json = json_string(text);

    append_json(words, json);
    json_decref(json);
}

static void append_time(struct buffer *words, double unix_s)
{
    char text[CLOCK_RFC3339_SIZE];

    if (unix_s < 0 || unix_s > 253402300799) /* the year 9999 */
        buffer_append_format(words, "%.0f", unix_s);
    else
        buffer_append_str(words, (clock_format_rfc3339((uint64_t)(unix_s * 1000), text), text));
}

static void append_distance(struct buffer *words, double seconds)
{
    if (seconds < 0)
        seconds = -seconds;
    if (seconds < 120)
        buffer_append_format(words, "%.0f s", seconds);
    else if (seconds < 7200)
        buffer_append_format(words, "%.0f minutes", seconds / 60);
    else
        buffer_append_format(words, "%.0f %s", seconds < 172800 ? seconds / 3600 : seconds / 86400,
                             seconds < 172800 ? "hours" : "days");
}

static void append_claim_time(struct buffer *words, const char *what, const json_t *claims,
                              const char *name, uint64_t now_ms)
{
    double unix_s = json_number_value(json_object_get(claims, name));
    double left_s = unix_s - (double)now_ms / 1000;

    buffer_append_format(words, "  %s: ", what);
    append_time(words, unix_s);
    buffer_append_str(words, left_s < 0 ? ", " : ", in ");
    append_distance(words, left_s);
    buffer_append_str(words, left_s < 0 ? " ago\n" : "\n");
}

static void append_member(struct buffer *words, const char *what, const json_t *object,
                          const char *name)
{
    buffer_append_format(words, "  %s: ", what);
    append_json(words, json_object_get(object, name));
    buffer_append_char(words, '\n');
}

/* --- keys --- */

static void append_key(struct buffer *words, const struct token_key *key)
{
    buffer_append_str(words, "    ");
    append_text(words, token_key_name(key));
    buffer_append_char(words, ':');
    for (unsigned i = 0; i < TOKEN_ALGORITHM_COUNT; i++) {
        if (token_key_takes(key, (enum token_algorithm)i))
            buffer_append_format(words, " %s", token_algorithm_name((enum token_algorithm)i));
    }
    buffer_append_char(words, '\n');
}

static void append_issuer(struct buffer *words, const struct issuer_keys *issuer)
{
    unsigned count = issuer->key_count;

    for (unsigned i = 0; i < issuer->file_count; i++)
        count += issuer->files[i].set ? jwk_set_count(issuer->files[i].set) : 0;
    if (issuer->settings->name) {
        buffer_append_str(words, "  keys of the issuer ");
        append_text(words, issuer->settings->name);
    } else {
        buffer_append_str(words, "  keys of the options");
    }
    buffer_append_str(words, count == 0 ? ": none\n" : ":\n");
    for (unsigned i = 0; i < issuer->key_count; i++)
        append_key(words, issuer->keys[i]);
    for (unsigned i = 0; i < issuer->file_count; i++) {
        const struct jwk_set *set = issuer->files[i].set;

        for (unsigned j = 0; set && j < jwk_set_count(set); j++)
            append_key(words, jwk_set_key(set, j));
        if (!set)
            buffer_append_format(words, "    none has been fetched yet: %s\n",
                                 issuer->files[i].path);
    }
}

/* Those that the token may have meant. */
static void append_keys(struct buffer *words, const struct token_policy *policy,
                        const json_t *claims)
{
    const char *iss = json_string_value(json_object_get(claims, "iss"));
    const struct issuer_keys *named = NULL;

    for (unsigned i = 0; iss && i < policy->issuer_count; i++) {
        const char *name = policy->issuers[i].settings->name;

        if (name && strcmp(iss, name) == 0)
            named = &policy->issuers[i];
    }
    for (unsigned i = 0; i < policy->issuer_count; i++) {
        if (!named || named == &policy->issuers[i])
            append_issuer(words, &policy->issuers[i]);
    }
}

/* --- verdicts --- */

static const struct issuer_settings *issuer_of(const struct token_policy *policy,
                                               const struct token *token)
{
    for (unsigned i = 0; i < policy->issuer_count; i++) {
        if (strcmp(policy->issuers[i].name, token->issuer) == 0)
            return policy->issuers[i].settings;
    }
    return &policy->own;
}

static void append_wanted_audiences(struct buffer *words, const struct issuer_settings *issuer)
{
    buffer_append_str(words, "  wanted:");
    for (unsigned i = 0; i < issuer->audiences.count; i++) {
        buffer_append_str(words, i > 0 ? " or " : " ");
        append_text(words, issuer->audiences.items[i]);
    }
    buffer_append_char(words, '\n');
}

static void append_good(struct buffer *words, const struct token *token, const json_t *claims,
                        uint64_t now_ms)
{
#define SCOPE(symbol, name)                                                                        \
    if (token->scopes & TOKEN_SCOPE_##symbol)                                                      \
        buffer_append_str(words, " " name);
    buffer_append_str(words, "good: a server with these settings accepts it now\n"
                             "  subject: ");
    append_text(words, token->subject);
    buffer_append_str(words, "\n  scopes:");
    if (token->scopes == 0)
        buffer_append_str(words, " none, so it permits nothing");
#include "src/model/token.def"
    buffer_append_str(words, "\n  key: ");
    append_text(words, token->kid);
    buffer_append_str(words, "\n  issuer: ");
    append_text(words, token->issuer);
    buffer_append_char(words, '\n');
    if (token->jti[0])
        append_member(words, "jti", claims, "jti");
    append_claim_time(words, "ends", claims, "exp", now_ms);
}

static void append_refusal(struct buffer *words, enum token_fault fault, const struct token *token)
{
    static const char *const sentences[TOKEN_FAULT_COUNT] = {
        [TOKEN_MALFORMED] = "it is not three parts of base64url, of which two are JSON objects "
                            "without repeated members",
        [TOKEN_CRITICAL_HEADER] = "its header has crit, which requires unknown extensions",
        [TOKEN_WRONG_ALGORITHM] = "its alg is not supported, or not one of the key's",
        [TOKEN_UNKNOWN_KEY] = "there is no key of that name, or no name, and several keys would "
                              "fit",
        [TOKEN_NO_KEYS_YET] = "its keys have not been fetched yet",
        [TOKEN_BAD_SIGNATURE] = "the signature is not that of the key",
        [TOKEN_EXPIRED] = "it has expired",
        [TOKEN_NOT_YET_VALID] = "it is not valid yet",
        [TOKEN_WRONG_ISSUER] = "it is of another issuer",
        [TOKEN_WRONG_AUDIENCE] = "it is for another audience",
        [TOKEN_REVOKED] = "it was taken back",
    };
    const char *sentence = fault == TOKEN_BAD_CLAIMS ? token->bad_claim : sentences[fault];

    buffer_append_format(words, "refused (%s): %s\n", token_fault_name(fault),
                         sentence ? sentence : "it is not good now");
}

static void append_reason(struct buffer *words, const struct token_policy *policy,
                          const struct parts *parts, enum token_fault fault,
                          const struct token *token, uint64_t now_ms)
{
    const struct issuer_settings *issuer = issuer_of(policy, token);

    switch (fault) {
    case TOKEN_WRONG_ALGORITHM:
    case TOKEN_UNKNOWN_KEY:
    case TOKEN_NO_KEYS_YET:
    case TOKEN_BAD_SIGNATURE:
        append_member(words, "alg", parts->header, "alg");
        append_member(words, "kid", parts->header, "kid");
        append_member(words, "iss", parts->claims, "iss");
        append_keys(words, policy, parts->claims);
        return;
    case TOKEN_EXPIRED:
        append_claim_time(words, "exp", parts->claims, "exp", now_ms);
        buffer_append_format(words, "  leeway: %u s\n", issuer->claims.leeway_s);
        return;
    case TOKEN_NOT_YET_VALID:
        append_claim_time(words, "nbf", parts->claims, "nbf", now_ms);
        buffer_append_format(words, "  leeway: %u s\n", issuer->claims.leeway_s);
        return;
    case TOKEN_WRONG_ISSUER:
        append_member(words, "iss", parts->claims, "iss");
        buffer_append_str(words, "  wanted: ");
        append_text(words, issuer->name ? issuer->name : "");
        buffer_append_char(words, '\n');
        return;
    case TOKEN_WRONG_AUDIENCE:
        append_member(words, "aud", parts->claims, "aud");
        append_wanted_audiences(words, issuer);
        return;
    default:
        return;
    }
}

enum token_fault token_words(const struct token_policy *policy, struct sl_slice jwt,
                             uint64_t now_ms, struct buffer *words)
{
    struct parts parts = {NULL, NULL};
    struct token token = {.subject = ""};
    enum token_fault fault = token_check(policy, jwt, now_ms, &token);

    if (fault == TOKEN_NO_MEMORY) {
        buffer_append_str(words, "out of memory\n");
        return fault;
    }
    if (jwt.size > TOKEN_MAX_BYTES) {
        buffer_append_format(words, "refused (malformed): it has %zu bytes, more than %d\n",
                             jwt.size, TOKEN_MAX_BYTES);
        return fault;
    }
    parts.header = read_part(jwt, 0);
    parts.claims = read_part(jwt, 1);
    if (fault == TOKEN_OK) {
        append_good(words, &token, parts.claims, now_ms);
    } else {
        append_refusal(words, fault, &token);
        append_reason(words, policy, &parts, fault, &token, now_ms);
    }
    json_decref(parts.header);
    json_decref(parts.claims);
    return fault;
}
