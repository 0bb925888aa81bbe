/* stream_pass.c - secrets, their names, and passes as JSON:
 *
 *     {"for":"...","sub":"42","holder":"42","scope":"stream:filter","exp":..,"iat":..,"jti":"..",
 *      "kid":"..","key":..,"iss":"..","lim":{"track":400,..}}
 *
 * Times are in milliseconds, and `sample` of `lim` in parts per million, as in a parsed token, so
 * that nothing is rounded twice. Scopes are words, because their bits may change. `key` is the
 * key's number; gateways that do not know it leave it out. */
#include "gateway/front/stream_pass.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include <jansson.h>
#include <openssl/sha.h>

#include "base/base64url.h"

enum { SECRET_BYTES = 16 };

static int put_text(struct sl_slice bytes, char *ret_text, size_t room)
{
    struct buffer text = BUFFER_INIT;
    bool fits;

    base64url_encode(bytes, &text);
    fits = !text.failed && text.size < room;
    if (fits) {
        memcpy(ret_text, text.data, text.size);
        ret_text[text.size] = '\0';
    }
    buffer_done(&text);
    return fits ? 0 : -ENOMEM;
}

int stream_pass_secret(char ret_secret[static STREAM_PASS_SECRET_SIZE])
{
    char bytes[SECRET_BYTES];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return errno ? -errno : -EIO;
    return put_text(sl_slice(bytes, sizeof(bytes)), ret_secret, STREAM_PASS_SECRET_SIZE);
}

bool stream_pass_is_secret(struct sl_slice text)
{
    struct buffer bytes = BUFFER_INIT;
    bool is_one = text.size == STREAM_PASS_SECRET_SIZE - 1 && base64url_decode(text, &bytes) == 0 &&
                  bytes.size == SECRET_BYTES;

    buffer_done(&bytes);
    return is_one;
}

int stream_pass_hash(struct sl_slice bytes, char ret_name[static STREAM_PASS_NAME_SIZE])
{
    unsigned char hash[SHA256_DIGEST_LENGTH];

    SHA256((const unsigned char *)bytes.data, bytes.size, hash);
    return put_text(sl_slice((const char *)hash, sizeof(hash)), ret_name, STREAM_PASS_NAME_SIZE);
}

int stream_pass_name(struct sl_slice secret, char ret_name[static STREAM_PASS_NAME_SIZE])
{
    return stream_pass_hash(secret, ret_name);
}

/* --- JSON --- */

static const struct {
    const char *name;
    unsigned scope;
} scopes[] = {
#define SCOPE(symbol, name) {name, TOKEN_SCOPE_##symbol},
#include "src/model/token.def"
};

static const struct {
    const char *name;
    size_t offset; /* offset of a uint32_t in struct sl_filter_limits */
} limits[] = {
#define LIMIT(field, name)   {name, offsetof(struct sl_filter_limits, field)},
#define PERCENT(field, name) {name, offsetof(struct sl_filter_limits, field)},
#include "src/model/token.def"
};

static const struct {
    const char *name;
    enum use use;
} uses[] = {
#define USE(symbol, name) {name, USE_##symbol},
#include "src/model/token.def"
};

static const struct {
    const char *name;
    size_t offset, size; /* of a text in struct token */
} texts[] = {
#define ROW(name, member)                                                                          \
    {                                                                                              \
        name, offsetof(struct token, member), sizeof(((struct token *)0)->member)                  \
    }
    ROW("sub", subject), ROW("holder", holder), ROW("jti", jti),
    ROW("kid", kid),     ROW("iss", issuer),
#undef ROW
};

static void append_member(struct buffer *json, const char *name, const char *text)
{
    buffer_append_format(json, ",\"%s\":", name);
    buffer_append_json_string(json, sl_slice_str(text));
}

int stream_pass_write(const struct stream_pass *pass, struct buffer *ret_json)
{
    const struct token *token = &pass->token;
    const char *gap = "";

    buffer_append_str(ret_json, "{\"for\":");
    buffer_append_json_string(ret_json, sl_slice_str(pass->print.text));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        append_member(ret_json, texts[i].name, (const char *)token + texts[i].offset);
    buffer_append_str(ret_json, ",\"scope\":\"");
    for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
        if (!(token->scopes & scopes[i].scope))
            continue;
        buffer_append_format(ret_json, "%s%s", gap, scopes[i].name);
        gap = " ";
    }
    buffer_append_format(ret_json, "\",\"exp\":%llu,\"iat\":%llu",
                         (unsigned long long)token->expires_ms,
                         (unsigned long long)token->issued_ms);
    if (token->key_number > 0)
        buffer_append_format(ret_json, ",\"key\":%llu", (unsigned long long)token->key_number);
    buffer_append_str(ret_json, ",\"lim\":{");
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        buffer_append_format(
            ret_json, "%s\"%s\":%u", i ? "," : "", limits[i].name,
            *(const uint32_t *)(const void *)((const char *)&token->limits + limits[i].offset));
    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
        if (token->uses[uses[i].use] > 0) /* omitted if not given, as in a token */
            buffer_append_format(ret_json, ",\"%s\":%llu", uses[i].name,
                                 (unsigned long long)token->uses[uses[i].use] - 1);
    }
    buffer_append_str(ret_json, "}}");
    return ret_json->failed ? -ENOMEM : 0;
}

static bool read_text(const json_t *value, char *room, size_t size)
{
    if (!json_is_string(value) || json_string_length(value) >= size)
        return false;
    memcpy(room, json_string_value(value), json_string_length(value) + 1);
    return true;
}

static unsigned read_scopes(const json_t *value)
{
    struct sl_slice rest = json_is_string(value)
                               ? sl_slice(json_string_value(value), json_string_length(value))
                               : SL_SLICE("");
    unsigned found = 0;

    while (rest.size > 0) {
        const char *end = memchr(rest.data, ' ', rest.size);
        struct sl_slice word = sl_slice(rest.data, end ? (size_t)(end - rest.data) : rest.size);

        for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++)
            found |= sl_slice_is(word, scopes[i].name) ? scopes[i].scope : 0;
        rest = sl_slice_from(rest, word.size + (end ? 1 : 0));
    }
    return found;
}

static bool read_all(const json_t *json, struct stream_pass *pass)
{
    struct token *token = &pass->token;
    const json_t *exp = json_object_get(json, "exp"), *iat = json_object_get(json, "iat");
    const json_t *lim = json_object_get(json, "lim"), *key = json_object_get(json, "key");

    if (key && (!json_is_integer(key) || json_integer_value(key) <= 0))
        return false;
    token->key_number = key ? (uint64_t)json_integer_value(key) : 0;
    if (!read_text(json_object_get(json, "for"), pass->print.text, sizeof(pass->print.text)) ||
        !json_is_integer(exp) || !json_is_integer(iat) || !json_is_object(lim))
        return false;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (!read_text(json_object_get(json, texts[i].name), (char *)token + texts[i].offset,
                       texts[i].size))
            return false;
    }
    token->expires_ms = (uint64_t)json_integer_value(exp);
    token->issued_ms = (uint64_t)json_integer_value(iat);
    token->scopes = read_scopes(json_object_get(json, "scope"));
    token->limits = SL_FILTER_LIMITS_DEFAULT;
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        const json_t *value = json_object_get(lim, limits[i].name);

        if (!json_is_integer(value) || json_integer_value(value) < 0 ||
            json_integer_value(value) > UINT32_MAX)
            return false;
        *(uint32_t *)(void *)((char *)&token->limits + limits[i].offset) =
            (uint32_t)json_integer_value(value);
    }
    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
        const json_t *value = json_object_get(lim, uses[i].name);

        if (value && (!json_is_integer(value) || json_integer_value(value) < 0))
            return false;
        token->uses[uses[i].use] = value ? (uint64_t)json_integer_value(value) + 1 : 0;
    }
    return true;
}

int stream_pass_read(struct sl_slice json, struct stream_pass *ret_pass)
{
    struct stream_pass pass = {.token.subject = ""};
    json_t *object = json_loadb(json.data, json.size, JSON_REJECT_DUPLICATES, NULL);
    bool is_good = json_is_object(object) && read_all(object, &pass);

    json_decref(object);
    if (!is_good)
        return -EBADMSG;
    *ret_pass = pass;
    return 0;
}
