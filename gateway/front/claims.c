/* claims.c - a function for each claim; errors are sentences for the bearer.
 *
 * Identity providers differ in where scopes and subjects are and in their types: all common forms
 * are accepted, and rules configure the rest. Numbers must be exact and plausible: limits have 32
 * bits, subjects 53, times a sensible range. */
#include "gateway/front/claims.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "src/model/id.h"

#define LATEST_MS (UINT64_C(1) << 53) /* limit for times; exact as a double */

static struct sl_slice string_slice(const json_t *string)
{
    return sl_slice(json_string_value(string), json_string_length(string));
}

static enum token_fault bad_claim(struct token *token, const char *which)
{
    token->bad_claim = which;
    return TOKEN_BAD_CLAIMS;
}

static const json_t *find_claim(const json_t *claims, const struct claim_path *path)
{
    for (unsigned i = 0; i < path->count; i++)
        claims = json_object_get(claims, path->names[i]);
    return claims;
}

/* --- scopes --- */

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

/* Removes the word at the start of `*text`; empty: there is none. */
static struct sl_slice next_word(struct sl_slice *text)
{
    size_t begin = 0, end;

    while (begin < text->size && text->data[begin] == ' ')
        begin++;
    for (end = begin; end < text->size && text->data[end] != ' ';)
        end++;
    *text = sl_slice_from(*text, end);
    return sl_slice(text->data - (end - begin), end - begin);
}

unsigned claims_scopes(struct sl_slice text, bool *ret_unknown)
{
    unsigned all = 0;

    for (;;) {
        struct sl_slice word = next_word(&text);
        unsigned scope = scope_of(word);

        if (word.size == 0)
            return all;
        if (scope == 0 && ret_unknown)
            *ret_unknown = true;
        all |= scope;
    }
}

/* A text of names separated by spaces, or a list of such texts, each passed to `take`. */
static bool read_names(const json_t *names, unsigned (*take)(const void *, struct sl_slice),
                       const void *context, struct token *token)
{
    if (!names)
        return true;
    if (json_is_string(names)) {
        token->scopes |= take(context, string_slice(names));
        return true;
    }
    if (!json_is_array(names))
        return false;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const json_t *one = json_array_get(names, i);

        if (!json_is_string(one))
            return false;
        token->scopes |= take(context, string_slice(one));
    }
    return true;
}

static unsigned take_scopes(const void *nothing, struct sl_slice text)
{
    (void)nothing;
    return claims_scopes(text, NULL);
}

/* The name of a role may contain spaces: the whole text is tried, too. */
static unsigned take_roles(const void *context, struct sl_slice text)
{
    const json_t *table = context;
    const json_t *whole = json_object_getn(table, text.data, text.size);
    unsigned all = whole ? claims_scopes(string_slice(whole), NULL) : 0;

    for (;;) {
        struct sl_slice word = next_word(&text);
        const json_t *of_role = json_object_getn(table, word.data, word.size);

        if (word.size == 0)
            return all;
        if (of_role)
            all |= claims_scopes(string_slice(of_role), NULL);
    }
}

static enum token_fault read_scopes(const struct claim_rules *rules, const json_t *claims,
                                    struct token *token)
{
    if (!read_names(json_object_get(claims, "scope"), take_scopes, NULL, token) ||
        !read_names(json_object_get(claims, "scp"), take_scopes, NULL, token))
        return bad_claim(token, "the token's scope or scp is neither a string nor a list of "
                                "strings");
    if (rules->roles.count > 0 &&
        !read_names(find_claim(claims, &rules->roles), take_roles, rules->role_table, token))
        return bad_claim(token, "the token's roles are neither a string nor a list of strings");
    token->scopes &= rules->allowed_scopes;
    return TOKEN_OK;
}

/* --- the subject --- */

/* Programs that read numbers as doubles, as JavaScript does, round those of 2^53 and more: such a
 * number could denote another user. */
static bool is_exact(const json_t *number)
{
    return json_is_integer(number) && json_integer_value(number) < INT64_C(1) << 53 &&
           json_integer_value(number) > -(INT64_C(1) << 53);
}

static enum token_fault read_subject(const struct claim_rules *rules, const json_t *claims,
                                     struct token *token)
{
    static const struct claim_path usual = {{"sub"}, 1};
    const json_t *sub = find_claim(claims, rules->subject.count > 0 ? &rules->subject : &usual);
    const char *prefix = rules->subject_prefix ? rules->subject_prefix : "";
    char number[32];
    const char *text = json_string_value(sub);
    int size;

    if (!sub)
        return TOKEN_OK;
    if (!text && !is_exact(sub))
        return bad_claim(token, "the token's subject is neither a string nor a whole number "
                                "below 2^53");
    if (!text) {
        snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(sub));
        text = number;
    }
    if (text[0] == '\0')
        return bad_claim(token, "the token's sub is not a string of 1 to 64 bytes: it is empty");
    size = snprintf(token->subject, sizeof(token->subject), "%s%s", prefix, text);
    if (size >= (int)sizeof(token->subject))
        return bad_claim(token, "the token's sub is not a string of 1 to 64 bytes: it is longer");
    return TOKEN_OK;
}

/* --- limits --- */

static const struct {
    const char *name;
    size_t offset; /* offset of a uint32_t in struct sl_filter_limits */
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
            *limit = (uint32_t)(percent * 10000 + 1e-6); /* 0.0003 in binary is slightly less than
                                                            that */
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

/* --- names and times --- */

/* Used by revocations. A number is as good a name as its digits. */
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

static enum token_fault check_times(const struct claim_rules *rules, const json_t *claims,
                                    uint64_t now_ms, struct token *token)
{
    const json_t *exp = json_object_get(claims, "exp");
    const json_t *nbf = json_object_get(claims, "nbf");
    double end_ms, begin_ms;

    if (!json_is_number(exp))
        return bad_claim(token, "the token's exp is missing or not a number of Unix seconds");
    if (nbf && !json_is_number(nbf))
        return bad_claim(token, "the token's nbf is not a number of Unix seconds");
    end_ms = (json_number_value(exp) + rules->leeway_s) * 1000;
    begin_ms = nbf ? (json_number_value(nbf) - rules->leeway_s) * 1000 : 0;
    if (end_ms <= (double)now_ms)
        return TOKEN_EXPIRED;
    if (begin_ms > (double)now_ms)
        return TOKEN_NOT_YET_VALID;
    token->begins_ms = begin_ms > 0 ? (uint64_t)begin_ms : 0;
    token->expires_ms = end_ms < (double)LATEST_MS ? (uint64_t)end_ms : LATEST_MS;
    return TOKEN_OK;
}

enum token_fault claims_read(const struct claim_rules *rules, const json_t *claims, uint64_t now_ms,
                             struct token *token)
{
    enum token_fault fault = read_subject(rules, claims, token);

    if (fault == TOKEN_OK)
        fault = read_scopes(rules, claims, token);
    if (fault != TOKEN_OK)
        return fault;
    if (!read_limits(json_object_get(claims, "lim"), token))
        return bad_claim(token,
                         "the token's lim has an unknown limit, or one that is not a number");
    if (!read_jti(json_object_get(claims, "jti"), token))
        return bad_claim(token, "the token's jti is not a string");
    if (!read_iat(json_object_get(claims, "iat"), token))
        return bad_claim(token, "the token's iat is not a number of Unix seconds");
    return check_times(rules, claims, now_ms, token);
}

/* --- the audience --- */

static bool is_among(const json_t *aud, const char *const *audiences, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (json_is_string(aud) && sl_slice_is(string_slice(aud), audiences[i]))
            return true;
    }
    return false;
}

bool claims_name_audience(const json_t *claims, const char *const *audiences, unsigned count)
{
    const json_t *aud = json_object_get(claims, "aud");

    for (size_t i = 0; i < json_array_size(aud); i++) {
        if (is_among(json_array_get(aud, i), audiences, count))
            return true;
    }
    return is_among(aud, audiences, count);
}
