/* token_key.c - keys in files, by OpenSSL 3.
 *
 * What costs more than a verification is done when the key is read: HMAC contexts are set up and
 * only copied then, and a public key's thumbprint (RFC 7638) is made. A key's name is its file's,
 * without the ending. An HMAC's length is checked before it is compared, in constant time. A secret
 * is wiped when its key goes. */
#include "gateway/front/token_key.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/pem.h>

#include "base/alloc.h"
#include "base/base64url.h"
#include "base/key_file.h"

enum {
    SECRET_GOOD_BYTES = 32, /* as many as HS256 has bits: RFC 7518, section 3.2 */
    RSA_MIN_BITS = 2048,    /* section 3.3 */
    P256_BYTES = 32,
    ECDSA_P256_DER_BYTES = 72
};

enum key_kind { KEY_SECRET, KEY_RSA, KEY_P256 };

struct token_key {
    enum key_kind kind;
    char *name;
    struct buffer thumbprint;
    struct buffer secret;
    EVP_MAC_CTX *hmac[TOKEN_ALGORITHM_COUNT]; /* keyed with the secret */
    EVP_PKEY *public_key;
    char warning[FAILURE_TEXT_SIZE]; /* empty: none */
};

static const struct {
    const char *name;
    enum key_kind kind;
    const EVP_MD *(*digest)(void);
} algorithms[TOKEN_ALGORITHM_COUNT] = {
    [TOKEN_HS256] = {"HS256", KEY_SECRET, EVP_sha256},
    [TOKEN_HS384] = {"HS384", KEY_SECRET, EVP_sha384},
    [TOKEN_HS512] = {"HS512", KEY_SECRET, EVP_sha512},
    [TOKEN_RS256] = {"RS256", KEY_RSA, EVP_sha256},
    [TOKEN_ES256] = {"ES256", KEY_P256, EVP_sha256},
};

bool token_algorithm_find(struct sl_slice name, enum token_algorithm *ret_algorithm)
{
    for (size_t i = 0; i < TOKEN_ALGORITHM_COUNT; i++) {
        if (sl_slice_is(name, algorithms[i].name)) {
            *ret_algorithm = (enum token_algorithm)i;
            return true;
        }
    }
    return false;
}

/* --- files ------------------------------------------------------------------------------- */

static char *name_of_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');

    return mem_strndup(base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
}

static struct token_key *token_key_new(const char *path, enum key_kind kind)
{
    struct token_key *key = mem_zalloc(sizeof(*key));

    if (!key)
        return NULL;
    key->kind = kind;
    key->name = name_of_file(path);
    if (!key->name) {
        token_key_free(key);
        return NULL;
    }
    return key;
}

void token_key_free(struct token_key *key)
{
    if (!key)
        return;
    mem_free(key->name);
    buffer_done(&key->thumbprint);
    key_file_done(&key->secret);
    for (int i = 0; i < TOKEN_ALGORITHM_COUNT; i++)
        EVP_MAC_CTX_free(key->hmac[i]);
    EVP_PKEY_free(key->public_key);
    mem_free(key);
}

/* To look the algorithm up and to set the key takes longer than to sign a token: done once. */
static EVP_MAC_CTX *hmac_new(const struct token_key *key, const EVP_MD *digest)
{
    EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *context = hmac ? EVP_MAC_CTX_new(hmac) : NULL;
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string("digest", (char *)EVP_MD_get0_name(digest), 0),
        OSSL_PARAM_construct_end(),
    };

    EVP_MAC_free(hmac);
    if (context && EVP_MAC_init(context, (const unsigned char *)key->secret.data, key->secret.size,
                                parameters) == 1)
        return context;
    EVP_MAC_CTX_free(context);
    return NULL;
}

static int prepare_hmacs(struct token_key *key)
{
    for (int i = 0; i < TOKEN_ALGORITHM_COUNT; i++) {
        if (algorithms[i].kind != KEY_SECRET)
            continue;
        key->hmac[i] = hmac_new(key, algorithms[i].digest());
        if (!key->hmac[i])
            return -ENOMEM;
    }
    return 0;
}

int token_key_read_secret(const char *path, struct token_key **ret_key, struct failure *reterr)
{
    struct token_key *key = token_key_new(path, KEY_SECRET);
    bool is_exposed = false;
    int r;

    if (!key)
        return -ENOMEM;
    r = key_file_read_secret(path, &key->secret, &is_exposed, reterr);
    if (r < 0)
        goto out;
    if (is_exposed)
        snprintf(key->warning, sizeof(key->warning),
                 "the secret in '%s' can be read by other users: chmod 600", path);
    else if (key->secret.size < SECRET_GOOD_BYTES)
        snprintf(
            key->warning, sizeof(key->warning),
            "the secret in '%s' has %zu bytes, fewer than %d: tokens may be forged by guessing",
            path, key->secret.size, SECRET_GOOD_BYTES);
    r = prepare_hmacs(key);
    if (r < 0)
        goto out;
    *ret_key = key;
    key = NULL;
out:
    token_key_free(key);
    return r;
}

/* --- public keys --------------------------------------------------------------------------- */

/* Appends the base64url of the big-endian number; `bytes` 0: as many as it needs. */
static int append_number(const EVP_PKEY *public_key, const char *parameter, int bytes,
                         struct buffer *text)
{
    unsigned char room[2048]; /* OpenSSL takes RSA keys of up to 16384 bits */
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

/* RFC 7638: the required members in alphabetical order, without white space, hashed. */
static int make_thumbprint(struct token_key *key)
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    struct buffer jwk = BUFFER_INIT;
    unsigned hash_size = 0;
    int r;

    if (key->kind == KEY_RSA) {
        buffer_append_str(&jwk, "{\"e\":\"");
        r = append_number(key->public_key, OSSL_PKEY_PARAM_RSA_E, 0, &jwk);
        buffer_append_str(&jwk, "\",\"kty\":\"RSA\",\"n\":\"");
        if (r == 0)
            r = append_number(key->public_key, OSSL_PKEY_PARAM_RSA_N, 0, &jwk);
    } else {
        buffer_append_str(&jwk, "{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"");
        r = append_number(key->public_key, OSSL_PKEY_PARAM_EC_PUB_X, P256_BYTES, &jwk);
        buffer_append_str(&jwk, "\",\"y\":\"");
        if (r == 0)
            r = append_number(key->public_key, OSSL_PKEY_PARAM_EC_PUB_Y, P256_BYTES, &jwk);
    }
    buffer_append_str(&jwk, "\"}");
    if (r == 0 && jwk.failed)
        r = -ENOMEM;
    if (r == 0 && EVP_Digest(jwk.data, jwk.size, hash, &hash_size, EVP_sha256(), NULL) != 1)
        r = -ENOMEM;
    if (r == 0) {
        base64url_encode(sl_slice((const char *)hash, hash_size), &key->thumbprint);
        r = buffer_str(&key->thumbprint) ? 0 : -ENOMEM;
    }
    buffer_done(&jwk);
    return r;
}

static int check_public_key(struct token_key *key, const char *path, struct failure *reterr)
{
    EVP_PKEY *public_key = key->public_key;

    if (EVP_PKEY_is_a(public_key, "RSA")) {
        key->kind = KEY_RSA;
        if (EVP_PKEY_get_bits(public_key) < RSA_MIN_BITS)
            return failure_set(reterr, -EINVAL, "the RSA key in '%s' has %d bits, fewer than %d",
                               path, EVP_PKEY_get_bits(public_key), RSA_MIN_BITS);
        return 0;
    }
    if (EVP_PKEY_is_a(public_key, "EC")) {
        char group[64];

        key->kind = KEY_P256;
        if (EVP_PKEY_get_group_name(public_key, group, sizeof(group), NULL) == 1 &&
            OBJ_sn2nid(group) == NID_X9_62_prime256v1)
            return 0;
        return failure_set(reterr, -EINVAL, "the EC key in '%s' is not on the curve P-256", path);
    }
    return failure_set(reterr, -EINVAL, "the key in '%s' is neither an RSA nor an EC key", path);
}

static int parse_public_key(struct token_key *key, const char *path, struct sl_slice text,
                            struct failure *reterr)
{
    BIO *bio;
    int r = 0;

    if (memmem(text.data, text.size, "PRIVATE KEY-----", 16))
        return failure_set(reterr, -EINVAL,
                           "'%s' holds a private key; sluiced wants the public one: "
                           "openssl pkey -in FILE -pubout",
                           path);
    bio = BIO_new_mem_buf(text.data, (int)text.size);
    if (!bio)
        return -ENOMEM;
    key->public_key = PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL);
    if (!key->public_key) {
        r = failure_set(reterr, -EINVAL, "'%s' holds no public key in PEM", path);
    } else {
        EVP_PKEY *another = PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL);

        if (another)
            r = failure_set(reterr, -EINVAL, "'%s' holds more than one key: use a file for each",
                            path);
        EVP_PKEY_free(another);
    }
    BIO_free(bio);
    ERR_clear_error();
    return r;
}

int token_key_read_public(const char *path, struct token_key **ret_key, struct failure *reterr)
{
    struct token_key *key = token_key_new(path, KEY_RSA);
    struct buffer content = BUFFER_INIT;
    bool is_exposed;
    int r;

    if (!key)
        return -ENOMEM;
    r = key_file_read(path, &content, &is_exposed, reterr);
    if (r == 0)
        r = parse_public_key(key, path, buffer_slice(&content), reterr);
    if (r == 0)
        r = check_public_key(key, path, reterr);
    if (r == 0) {
        r = make_thumbprint(key);
        if (r == -EINVAL)
            failure_set(reterr, r, "the numbers of the key in '%s' make no sense", path);
    }
    if (r == 0) {
        *ret_key = key;
        key = NULL;
    }
    buffer_done(&content);
    token_key_free(key);
    return r;
}

/* --- what a key answers -------------------------------------------------------------------- */

bool token_key_takes(const struct token_key *key, enum token_algorithm algorithm)
{
    return algorithms[algorithm].kind == key->kind;
}

bool token_key_is_called(const struct token_key *key, struct sl_slice kid)
{
    return sl_slice_is(kid, key->name) ||
           (key->thumbprint.size > 0 && sl_slice_equal(kid, buffer_slice(&key->thumbprint)));
}

const char *token_key_name(const struct token_key *key)
{
    return key->name;
}

const char *token_key_thumbprint(const struct token_key *key)
{
    return key->thumbprint.data ? key->thumbprint.data : "";
}

const char *token_key_warning(const struct token_key *key)
{
    return key->warning[0] ? key->warning : NULL;
}

static int verify_hmac(EVP_MAC_CTX *hmac, struct sl_slice text, struct sl_slice signature)
{
    unsigned char expected[EVP_MAX_MD_SIZE];
    size_t expected_size = 0;

    if (EVP_MAC_init(hmac, NULL, 0, NULL) != 1 ||
        EVP_MAC_update(hmac, (const unsigned char *)text.data, text.size) != 1 ||
        EVP_MAC_final(hmac, expected, &expected_size, sizeof(expected)) != 1)
        return -ENOMEM;
    if (signature.size != expected_size ||
        CRYPTO_memcmp(signature.data, expected, expected_size) != 0)
        return -EBADMSG;
    return 0;
}

/* JOSE has the two numbers of an ECDSA signature side by side (RFC 7518, section 3.4), OpenSSL
 * wants them in DER. Bytes written to `ret_der`; 0: they do not fit; -ENOMEM. */
static int ecdsa_to_der(struct sl_slice signature,
                        unsigned char ret_der[static ECDSA_P256_DER_BYTES])
{
    const unsigned char *bytes = (const unsigned char *)signature.data;
    ECDSA_SIG *numbers = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(bytes, P256_BYTES, NULL);
    BIGNUM *s = BN_bin2bn(bytes + P256_BYTES, P256_BYTES, NULL);
    unsigned char *at = ret_der;
    int size = -ENOMEM;

    if (numbers && r && s && ECDSA_SIG_set0(numbers, r, s) == 1) {
        r = s = NULL;
        size = i2d_ECDSA_SIG(numbers, NULL);
        size = size > 0 && size <= ECDSA_P256_DER_BYTES ? i2d_ECDSA_SIG(numbers, &at) : 0;
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(numbers);
    return size;
}

static int verify_public(const struct token_key *key, const EVP_MD *digest, struct sl_slice text,
                         struct sl_slice signature)
{
    unsigned char der[ECDSA_P256_DER_BYTES];
    EVP_MD_CTX *context;
    int r = -ENOMEM;

    if (signature.size !=
        (key->kind == KEY_P256 ? 2 * P256_BYTES : (size_t)EVP_PKEY_get_size(key->public_key)))
        return -EBADMSG;
    if (key->kind == KEY_P256) {
        int size = ecdsa_to_der(signature, der);

        if (size <= 0)
            return size < 0 ? size : -EBADMSG;
        signature = sl_slice((const char *)der, (size_t)size);
    }
    context = EVP_MD_CTX_new();
    if (context && EVP_DigestVerifyInit(context, NULL, digest, NULL, key->public_key) == 1)
        r = EVP_DigestVerify(context, (const unsigned char *)signature.data, signature.size,
                             (const unsigned char *)text.data, text.size) == 1
                ? 0
                : -EBADMSG;
    EVP_MD_CTX_free(context);
    ERR_clear_error();
    return r;
}

int token_key_verify(const struct token_key *key, enum token_algorithm algorithm,
                     struct sl_slice text, struct sl_slice signature)
{
    assert(token_key_takes(key, algorithm));
    return key->kind == KEY_SECRET
               ? verify_hmac(key->hmac[algorithm], text, signature)
               : verify_public(key, algorithms[algorithm].digest(), text, signature);
}
