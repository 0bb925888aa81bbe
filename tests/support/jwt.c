#include "tests/support/jwt.h"

#include <assert.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/rsa.h>

#include "base/base64url.h"

EVP_PKEY *jwt_key_new(const char *kind)
{
    if (strcmp(kind, "RSA") == 0)
        return EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
    if (kind[0] == 'P')
        return EVP_PKEY_Q_keygen(NULL, NULL, "EC", kind);
    return EVP_PKEY_Q_keygen(NULL, NULL, kind);
}

static const EVP_MD *digest_of(const char *alg)
{
    if (alg[0] == 'E' && alg[1] == 'd')
        return NULL;
    return strstr(alg, "256") ? EVP_sha256() : strstr(alg, "384") ? EVP_sha384() : EVP_sha512();
}

static size_t numbers_of(const unsigned char *der, size_t size, const EVP_PKEY *key,
                         unsigned char *ret_raw)
{
    int bytes = (EVP_PKEY_get_bits(key) + 7) / 8;
    ECDSA_SIG *numbers = d2i_ECDSA_SIG(NULL, &der, (long)size);

    BN_bn2binpad(ECDSA_SIG_get0_r(numbers), ret_raw, bytes);
    BN_bn2binpad(ECDSA_SIG_get0_s(numbers), ret_raw + bytes, bytes);
    ECDSA_SIG_free(numbers);
    return 2 * (size_t)bytes;
}

void jwt_sign(struct buffer *jwt, const char *header, const char *claims, EVP_PKEY *key,
              const char *alg)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY_CTX *details = NULL;
    unsigned char signature[1024], raw[132];
    size_t size = sizeof(signature);
    int good;

    buffer_clear(jwt);
    base64url_encode(sl_slice_str(header), jwt);
    buffer_append_char(jwt, '.');
    base64url_encode(sl_slice_str(claims), jwt);
    good = EVP_DigestSignInit(context, &details, digest_of(alg), NULL, key);
    if (alg[0] == 'P') {
        EVP_PKEY_CTX_set_rsa_padding(details, RSA_PKCS1_PSS_PADDING);
        EVP_PKEY_CTX_set_rsa_pss_saltlen(details, RSA_PSS_SALTLEN_DIGEST);
    }
    assert(good == 1 &&
           EVP_DigestSign(context, signature, &size, (unsigned char *)jwt->data, jwt->size) == 1);
    EVP_MD_CTX_free(context);
    buffer_append_char(jwt, '.');
    if (EVP_PKEY_is_a(key, "EC"))
        base64url_encode(sl_slice((char *)raw, numbers_of(signature, size, key, raw)), jwt);
    else
        base64url_encode(sl_slice((char *)signature, size), jwt);
}

static void append_number(struct buffer *json, const EVP_PKEY *key, const char *name,
                          const char *parameter, int bytes)
{
    unsigned char room[1024];
    BIGNUM *number = NULL;

    EVP_PKEY_get_bn_param(key, parameter, &number);
    if (bytes == 0)
        bytes = BN_num_bytes(number);
    BN_bn2binpad(number, room, bytes);
    BN_free(number);
    buffer_append_format(json, ",\"%s\":\"", name);
    base64url_encode(sl_slice((char *)room, (size_t)bytes), json);
    buffer_append_char(json, '"');
}

void jwt_append_jwk(struct buffer *json, const EVP_PKEY *key, const char *more)
{
    int bits = EVP_PKEY_get_bits(key), bytes = (bits + 7) / 8;

    if (EVP_PKEY_is_a(key, "RSA")) {
        buffer_append_str(json, "{\"kty\":\"RSA\"");
        append_number(json, key, "n", OSSL_PKEY_PARAM_RSA_N, 0);
        append_number(json, key, "e", OSSL_PKEY_PARAM_RSA_E, 0);
    } else if (EVP_PKEY_is_a(key, "EC")) {
        buffer_append_format(json, "{\"kty\":\"EC\",\"crv\":\"P-%d\"", bits);
        append_number(json, key, "x", OSSL_PKEY_PARAM_EC_PUB_X, bytes);
        append_number(json, key, "y", OSSL_PKEY_PARAM_EC_PUB_Y, bytes);
    } else {
        unsigned char point[32];
        size_t size = sizeof(point);

        EVP_PKEY_get_raw_public_key(key, point, &size);
        buffer_append_str(json, "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"");
        base64url_encode(sl_slice((char *)point, size), json);
        buffer_append_char(json, '"');
    }
    buffer_append_str(json, more);
    buffer_append_char(json, '}');
}
