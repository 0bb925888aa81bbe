/* token_key_jwk.c - converts a JSON Web Key to a key.
 *
 * A set may contain other keys than those we want: for encryption, or of newer kinds. So a key for
 * another purpose (-ENOTSUP) is distinguished from an invalid one (-EINVAL); the reader of a set
 * skips both. `oct` is a secret, which must not come from a set, because then whoever can write or
 * read the set could make tokens. Sizes are checked before any computation. */
#include "gateway/front/token_key_parts.h"

#include <errno.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/objects.h>
#include <openssl/param_build.h>

#include "base/alloc.h"
#include "base/base64url.h"

enum {
    KID_MAX_BYTES = 512,
    MODULUS_MAX_BYTES = 1025, /* a leading zero is wrong, but common */
    EXPONENT_MAX_BYTES = 8,
    POINT_MAX_BYTES = 1 + 2 * 66
};

static struct sl_slice text_of(const json_t *jwk, const char *name)
{
    const json_t *member = json_object_get(jwk, name);

    return json_is_string(member) ? sl_slice(json_string_value(member), json_string_length(member))
                                  : SL_SLICE_NONE;
}

/* Appends the bytes of a member. */
static int read_bytes(const json_t *jwk, const char *name, size_t least, size_t most,
                      struct buffer *bytes, struct failure *reterr)
{
    struct sl_slice text = text_of(jwk, name);
    size_t before = bytes->size;
    int r;

    if (!text.data)
        return failure_set(reterr, -EINVAL, "its %s is no text", name);
    if (text.size > (most + 2) / 3 * 4)
        return failure_set(reterr, -EINVAL, "its %s is too long", name);
    r = base64url_decode(text, bytes);
    if (r < 0)
        return r == -ENOMEM ? r : failure_set(reterr, r, "its %s is not base64url", name);
    if (bytes->size - before < least || bytes->size - before > most)
        return failure_set(reterr, -EINVAL, "its %s has %zu bytes", name, bytes->size - before);
    return 0;
}

/* --- the purpose --- */

static bool has_verify(const json_t *key_ops)
{
    for (size_t i = 0; i < json_array_size(key_ops); i++) {
        const char *one = json_string_value(json_array_get(key_ops, i));

        if (one && strcmp(one, "verify") == 0)
            return true;
    }
    return false;
}

static int check_use(const json_t *jwk, struct failure *reterr)
{
    static const char *const private_members[] = {"d", "p", "q", "dp", "dq", "qi", "oth", "k"};

    if (json_object_get(jwk, "use") && !sl_slice_is(text_of(jwk, "use"), "sig"))
        return failure_set(reterr, -ENOTSUP, "its use is not sig");
    if (json_object_get(jwk, "key_ops") && !has_verify(json_object_get(jwk, "key_ops")))
        return failure_set(reterr, -ENOTSUP, "verify is not among its key_ops");
    for (size_t i = 0; i < sizeof(private_members) / sizeof(private_members[0]); i++) {
        if (json_object_get(jwk, private_members[i]))
            return failure_set(reterr, -EINVAL, "it is a private key");
    }
    return 0;
}

/* `alg` must be an algorithm of the key's kind. */
static int read_alg(const json_t *jwk, struct token_key *key, struct failure *reterr)
{
    enum token_algorithm algorithm;

    if (!json_object_get(jwk, "alg"))
        return 0;
    if (!token_algorithm_find(text_of(jwk, "alg"), &algorithm))
        return failure_set(reterr, -ENOTSUP, "its alg is none of ours");
    if (!token_key_takes(key, algorithm))
        return failure_set(reterr, -EINVAL, "its alg is for another kind of key");
    token_key_narrow(key, 1U << algorithm);
    return 0;
}

static int read_kid(const json_t *jwk, struct token_key *key, struct failure *reterr)
{
    struct sl_slice kid = text_of(jwk, "kid");

    if (json_object_get(jwk, "kid") && (kid.size == 0 || kid.size > KID_MAX_BYTES))
        return failure_set(reterr, -EINVAL, "its kid is not a string of 1 to %d bytes",
                           KID_MAX_BYTES);
    if (!kid.data)
        kid = buffer_slice(&key->thumbprint);
    key->name = mem_strndup(kid.data, kid.size);
    return key->name ? 0 : -ENOMEM;
}

/* --- the numbers --- */

static int make_key(const char *type, OSSL_PARAM_BLD *builder, EVP_PKEY **ret_key,
                    struct failure *reterr)
{
    OSSL_PARAM *parameters = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    int r = -ENOMEM;

    if (parameters && context && EVP_PKEY_fromdata_init(context) == 1)
        r = EVP_PKEY_fromdata(context, ret_key, EVP_PKEY_PUBLIC_KEY, parameters) == 1
                ? 0
                : failure_set(reterr, -EINVAL, "its numbers are no key");
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(parameters);
    return r;
}

static int make_rsa(const struct buffer *n, const struct buffer *e, EVP_PKEY **ret_key,
                    struct failure *reterr)
{
    BIGNUM *modulus = BN_bin2bn((const unsigned char *)n->data, (int)n->size, NULL);
    BIGNUM *exponent = BN_bin2bn((const unsigned char *)e->data, (int)e->size, NULL);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    int r = -ENOMEM;

    if (modulus && exponent && builder &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, modulus) == 1 &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, exponent) == 1)
        r = make_key("RSA", builder, ret_key, reterr);
    OSSL_PARAM_BLD_free(builder);
    BN_free(modulus);
    BN_free(exponent);
    return r;
}

static int read_rsa(const json_t *jwk, EVP_PKEY **ret_key, struct failure *reterr)
{
    struct buffer n = BUFFER_INIT, e = BUFFER_INIT;
    int r;

    r = read_bytes(jwk, "n", 1, MODULUS_MAX_BYTES, &n, reterr);
    if (r == 0)
        r = read_bytes(jwk, "e", 1, EXPONENT_MAX_BYTES, &e, reterr);
    if (r == 0)
        r = make_rsa(&n, &e, ret_key, reterr);
    buffer_done(&n);
    buffer_done(&e);
    return r;
}

static int make_elliptic(const char *group, const struct buffer *point, EVP_PKEY **ret_key,
                         struct failure *reterr)
{
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    int r = -ENOMEM;

    if (builder &&
        OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, group, 0) == 1 &&
        OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point->data,
                                         point->size) == 1)
        r = make_key("EC", builder, ret_key, reterr);
    OSSL_PARAM_BLD_free(builder);
    return r;
}

static int read_elliptic(const json_t *jwk, EVP_PKEY **ret_key, struct failure *reterr)
{
    static const struct {
        const char *crv, *group;
        enum token_key_kind kind;
    } curves[] = {{"P-256", "P-256", TOKEN_KEY_P256},
                  {"P-384", "P-384", TOKEN_KEY_P384},
                  {"P-521", "P-521", TOKEN_KEY_P521}};
    struct buffer point = BUFFER_INIT;
    int r = -ENOTSUP;

    failure_set(reterr, r, "its crv is not P-256, P-384 or P-521");
    for (size_t i = 0; i < sizeof(curves) / sizeof(curves[0]); i++) {
        size_t bytes = token_key_kind_bytes(curves[i].kind);

        if (!sl_slice_is(text_of(jwk, "crv"), curves[i].crv))
            continue;
        buffer_append_char(&point, 4); /* uncompressed form */
        r = read_bytes(jwk, "x", bytes, bytes, &point, reterr);
        if (r == 0)
            r = read_bytes(jwk, "y", bytes, bytes, &point, reterr);
        if (r == 0)
            r = point.failed ? -ENOMEM : make_elliptic(curves[i].group, &point, ret_key, reterr);
    }
    buffer_done(&point);
    return r;
}

static int read_edwards(const json_t *jwk, EVP_PKEY **ret_key, struct failure *reterr)
{
    const size_t bytes = token_key_kind_bytes(TOKEN_KEY_ED25519);
    struct buffer point = BUFFER_INIT;
    int r;

    if (!sl_slice_is(text_of(jwk, "crv"), "Ed25519"))
        return failure_set(reterr, -ENOTSUP, "its crv is not Ed25519");
    r = read_bytes(jwk, "x", bytes, bytes, &point, reterr);
    if (r == 0) {
        *ret_key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL,
                                               (const unsigned char *)point.data, point.size);
        if (!*ret_key)
            r = failure_set(reterr, -EINVAL, "its x is no key");
    }
    buffer_done(&point);
    return r;
}

static int read_numbers(const json_t *jwk, EVP_PKEY **ret_key, struct failure *reterr)
{
    struct sl_slice kty = text_of(jwk, "kty");

    if (sl_slice_is(kty, "RSA"))
        return read_rsa(jwk, ret_key, reterr);
    if (sl_slice_is(kty, "EC"))
        return read_elliptic(jwk, ret_key, reterr);
    if (sl_slice_is(kty, "OKP"))
        return read_edwards(jwk, ret_key, reterr);
    if (sl_slice_is(kty, "oct"))
        return failure_set(reterr, -ENOTSUP,
                           "it is a secret (oct), which is not accepted from a "
                           "set");
    return failure_set(reterr, kty.data ? -ENOTSUP : -EINVAL, "its kty is not RSA, EC or OKP");
}

int token_key_from_jwk(const json_t *jwk, struct token_key **ret_key, struct failure *reterr)
{
    struct token_key *key;
    int r;

    if (!json_is_object(jwk))
        return failure_set(reterr, -EINVAL, "it is no object");
    key = mem_zalloc(sizeof(*key));
    if (!key)
        return -ENOMEM;
    r = sl_slice_is(text_of(jwk, "kty"), "oct") ? 0 : check_use(jwk, reterr);
    if (r == 0)
        r = read_numbers(jwk, &key->public_key, reterr);
    if (r == 0)
        r = token_key_check_public(key, reterr);
    if (r == 0)
        r = read_alg(jwk, key, reterr);
    if (r == 0)
        r = read_kid(jwk, key, reterr);
    if (r == 0) {
        *ret_key = key;
        key = NULL;
    }
    token_key_free(key);
    ERR_clear_error();
    return r;
}
