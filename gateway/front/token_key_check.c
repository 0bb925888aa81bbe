/* token_key_check.c - checks whether a public key is acceptable: its kind, its size, and known
 * weaknesses; computes its thumbprint.
 *
 * RSA: 2048 to 8192 bits; an odd exponent of at least 3 and at most 32 bits, because with 1 every
 * text is its own signature, and a long one makes each verification slow; no modulus with the
 * fingerprint of the generator whose keys can be factored (CVE-2017-15361). Elliptic: a point on
 * the curve. Ed25519: not one of the few points of small order, with which anybody can sign. */
#include "gateway/front/token_key_parts.h"

#include <errno.h>
#include <string.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/objects.h>

#include "base/base64url.h"

enum {
    RSA_MIN_BITS = 2048, /* RFC 7518, section 3.3 */
    RSA_MAX_BITS = 8192,
    RSA_EXPONENT_MAX_BITS = 32,
    ED25519_BYTES = 32
};

static const struct curve {
    enum token_key_kind kind;
    int nid;
    unsigned bytes;
    const char *name; /* in a JSON Web Key */
} curves[] = {
    {TOKEN_KEY_P256, NID_X9_62_prime256v1, 32, "P-256"},
    {TOKEN_KEY_P384, NID_secp384r1, 48, "P-384"},
    {TOKEN_KEY_P521, NID_secp521r1, 66, "P-521"},
};

static const struct curve *find_curve(enum token_key_kind kind)
{
    for (size_t i = 0; i < sizeof(curves) / sizeof(curves[0]); i++) {
        if (curves[i].kind == kind)
            return &curves[i];
    }
    return NULL;
}

unsigned token_key_kind_bytes(enum token_key_kind kind)
{
    const struct curve *curve = find_curve(kind);

    return curve ? curve->bytes : kind == TOKEN_KEY_ED25519 ? ED25519_BYTES : 0;
}

/* --- RSA --- */

/* Whether `rest` is a power of 65537 modulo the small prime. */
static bool is_power(unsigned rest, unsigned prime)
{
    unsigned power = 1;

    do {
        if (power == rest)
            return true;
        power = power * (65537 % prime) % prime;
    } while (power != 1);
    return false;
}

/* All primes of those keys are powers of 65537 modulo each of these, and so is their product; of
 * other keys about one in 10^8. */
static bool has_fingerprint(const BIGNUM *modulus)
{
    static const unsigned char primes[] = {
        3,  5,  7,  11, 13, 17,  19,  23,  29,  31,  37,  41,  43,  47,  53,  59,  61,  67,  71,
        73, 79, 83, 89, 97, 101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167};

    for (size_t i = 0; i < sizeof(primes); i++) {
        if (!is_power((unsigned)BN_mod_word(modulus, primes[i]), primes[i]))
            return false;
    }
    return true;
}

static int check_numbers(const BIGNUM *modulus, const BIGNUM *exponent, struct failure *reterr)
{
    if (BN_num_bits(modulus) < RSA_MIN_BITS || BN_num_bits(modulus) > RSA_MAX_BITS)
        return failure_set(reterr, -EINVAL, "it is an RSA key of %d bits; there are %d to %d",
                           BN_num_bits(modulus), RSA_MIN_BITS, RSA_MAX_BITS);
    if (!BN_is_odd(exponent) || BN_is_one(exponent) ||
        BN_num_bits(exponent) > RSA_EXPONENT_MAX_BITS)
        return failure_set(reterr, -EINVAL,
                           "its exponent is not an odd number from 3 to one of %d bits",
                           RSA_EXPONENT_MAX_BITS);
    if (!BN_is_odd(modulus))
        return failure_set(reterr, -EINVAL, "its modulus is even");
    if (has_fingerprint(modulus))
        return failure_set(
            reterr, -EINVAL,
            "it was made by a generator whose keys can be factored (CVE-2017-15361)");
    return 0;
}

static int check_rsa(struct token_key *key, struct failure *reterr)
{
    BIGNUM *modulus = NULL, *exponent = NULL;
    int r = -EINVAL;

    key->kind = TOKEN_KEY_RSA;
    if (EVP_PKEY_get_bn_param(key->public_key, OSSL_PKEY_PARAM_RSA_N, &modulus) == 1 &&
        EVP_PKEY_get_bn_param(key->public_key, OSSL_PKEY_PARAM_RSA_E, &exponent) == 1)
        r = check_numbers(modulus, exponent, reterr);
    else
        failure_set(reterr, r, "its numbers are invalid");
    BN_free(modulus);
    BN_free(exponent);
    return r;
}

/* --- other kinds --- */

static int check_elliptic(struct token_key *key, struct failure *reterr)
{
    EVP_PKEY_CTX *context;
    char group[64];
    int nid = NID_undef;
    bool is_good;

    if (EVP_PKEY_get_group_name(key->public_key, group, sizeof(group), NULL) == 1)
        nid = OBJ_sn2nid(group);
    for (size_t i = 0; i < sizeof(curves) / sizeof(curves[0]); i++) {
        if (curves[i].nid != nid)
            continue;
        key->kind = curves[i].kind;
        context = EVP_PKEY_CTX_new_from_pkey(NULL, key->public_key, NULL);
        if (!context)
            return -ENOMEM;
        is_good = EVP_PKEY_public_check_quick(context) == 1;
        EVP_PKEY_CTX_free(context);
        return is_good ? 0 : failure_set(reterr, -EINVAL, "its point is not on its curve");
    }
    return failure_set(reterr, -ENOTSUP, "its curve is not P-256, P-384 or P-521");
}

/* The y of all points whose order divides 8, including encodings that are not reduced. */
static bool has_small_order(const unsigned char point[static ED25519_BYTES])
{
    static const unsigned char orders_of_8[2][ED25519_BYTES] = {
        {0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4,
         0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6,
         0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05},
        {0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b,
         0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39,
         0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a}};
    const unsigned char last = point[ED25519_BYTES - 1] & 0x7f; /* without the sign of x */
    bool zeros = last == 0, ones = last == 0x7f;

    for (int i = 0; i < 2; i++) {
        if (memcmp(point, orders_of_8[i], ED25519_BYTES - 1) == 0 &&
            last == orders_of_8[i][ED25519_BYTES - 1])
            return true;
    }
    for (int i = 1; i < ED25519_BYTES - 1; i++) {
        zeros &= point[i] == 0;
        ones &= point[i] == 0xff;
    }
    return (zeros && point[0] <= 1) || (ones && point[0] >= 0xec && point[0] <= 0xee);
}

static int check_edwards(struct token_key *key, struct failure *reterr)
{
    unsigned char point[ED25519_BYTES];
    size_t size = sizeof(point);

    key->kind = TOKEN_KEY_ED25519;
    if (EVP_PKEY_get_raw_public_key(key->public_key, point, &size) != 1 || size != sizeof(point))
        return failure_set(reterr, -EINVAL, "its point makes no sense");
    if (has_small_order(point))
        return failure_set(reterr, -EINVAL, "its point is of small order: anybody could sign");
    return 0;
}

/* --- the thumbprint --- */

/* Appends the base64url of the big-endian number; `bytes` 0: as many as necessary. */
static int append_number(const EVP_PKEY *public_key, const char *parameter, int bytes,
                         struct buffer *text)
{
    unsigned char room[RSA_MAX_BITS / 8];
    BIGNUM *number = NULL;
    int r = -EINVAL;

    if (EVP_PKEY_get_bn_param(public_key, parameter, &number) != 1)
        return -EINVAL;
    if (bytes == 0)
        bytes = BN_num_bytes(number);
    if (bytes <= (int)sizeof(room) && BN_bn2binpad(number, room, bytes) == bytes) {
        base64url_encode(sl_slice((const char *)room, (size_t)bytes), text);
        r = 0;
    }
    BN_free(number);
    return r;
}

static int append_rsa(const struct token_key *key, struct buffer *jwk)
{
    int r;

    buffer_append_str(jwk, "{\"e\":\"");
    r = append_number(key->public_key, OSSL_PKEY_PARAM_RSA_E, 0, jwk);
    buffer_append_str(jwk, "\",\"kty\":\"RSA\",\"n\":\"");
    return r == 0 ? append_number(key->public_key, OSSL_PKEY_PARAM_RSA_N, 0, jwk) : r;
}

static int append_elliptic(const struct token_key *key, struct buffer *jwk)
{
    const struct curve *curve = find_curve(key->kind);
    int r;

    buffer_append_format(jwk, "{\"crv\":\"%s\",\"kty\":\"EC\",\"x\":\"", curve->name);
    r = append_number(key->public_key, OSSL_PKEY_PARAM_EC_PUB_X, (int)curve->bytes, jwk);
    buffer_append_str(jwk, "\",\"y\":\"");
    return r == 0 ? append_number(key->public_key, OSSL_PKEY_PARAM_EC_PUB_Y, (int)curve->bytes, jwk)
                  : r;
}

static int append_edwards(const struct token_key *key, struct buffer *jwk)
{
    unsigned char point[ED25519_BYTES];
    size_t size = sizeof(point);

    buffer_append_str(jwk, "{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"");
    if (EVP_PKEY_get_raw_public_key(key->public_key, point, &size) != 1)
        return -EINVAL;
    base64url_encode(sl_slice((const char *)point, size), jwk);
    return 0;
}

/* RFC 7638: a hash of the required members in alphabetical order, without white space. */
static int make_thumbprint(struct token_key *key, struct failure *reterr)
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    struct buffer jwk = BUFFER_INIT;
    unsigned hash_size = 0;
    int r;

    if (key->kind == TOKEN_KEY_RSA)
        r = append_rsa(key, &jwk);
    else
        r = key->kind == TOKEN_KEY_ED25519 ? append_edwards(key, &jwk) : append_elliptic(key, &jwk);
    buffer_append_str(&jwk, "\"}");
    if (r == 0 && jwk.failed)
        r = -ENOMEM;
    if (r == 0 && EVP_Digest(jwk.data, jwk.size, hash, &hash_size, EVP_sha256(), NULL) != 1)
        r = -ENOMEM;
    if (r == 0) {
        token_key_take_number(key, hash);
        base64url_encode(sl_slice((const char *)hash, hash_size), &key->thumbprint);
        r = buffer_str(&key->thumbprint) ? 0 : -ENOMEM;
    }
    buffer_done(&jwk);
    return r == -EINVAL ? failure_set(reterr, r, "its numbers are invalid") : r;
}

int token_key_check_public(struct token_key *key, struct failure *reterr)
{
    int r;

    if (EVP_PKEY_is_a(key->public_key, "RSA"))
        r = check_rsa(key, reterr);
    else if (EVP_PKEY_is_a(key->public_key, "EC"))
        r = check_elliptic(key, reterr);
    else if (EVP_PKEY_is_a(key->public_key, "ED25519"))
        r = check_edwards(key, reterr);
    else
        r = failure_set(reterr, -ENOTSUP, "it is not RSA, EC or Ed25519");
    if (r == 0)
        r = make_thumbprint(key, reterr);
    if (r == 0)
        key->algorithms = token_algorithms_of(key->kind);
    ERR_clear_error();
    return r;
}
