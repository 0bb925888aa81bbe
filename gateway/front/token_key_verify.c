/* token_key_verify.c - verifies signatures with OpenSSL 3.
 *
 * The length of a signature is checked first: exactly that of the HMAC, of the modulus, or of two
 * numbers of the curve's size. An HMAC is compared in constant time. */
#include "gateway/front/token_key_parts.h"

#include <assert.h>
#include <errno.h>

#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/rsa.h>

enum { ECDSA_DER_BYTES = 144 /* two numbers of 66 bytes, a sign, and their headers */ };

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

/* JOSE concatenates the two numbers of an ECDSA signature (RFC 7518, section 3.4), OpenSSL needs
 * them in DER. Returns the number of bytes written to `ret_der`; 0: they do not fit; -ENOMEM. */
static int ecdsa_to_der(struct sl_slice signature, unsigned char ret_der[static ECDSA_DER_BYTES])
{
    const unsigned char *bytes = (const unsigned char *)signature.data;
    int half = (int)(signature.size / 2);
    ECDSA_SIG *numbers = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(bytes, half, NULL);
    BIGNUM *s = BN_bin2bn(bytes + half, half, NULL);
    unsigned char *at = ret_der;
    int size = -ENOMEM;

    if (numbers && r && s && ECDSA_SIG_set0(numbers, r, s) == 1) {
        r = s = NULL;
        size = i2d_ECDSA_SIG(numbers, NULL);
        size = size > 0 && size <= ECDSA_DER_BYTES ? i2d_ECDSA_SIG(numbers, &at) : 0;
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(numbers);
    return size;
}

static size_t signature_bytes(const struct token_key *key)
{
    unsigned bytes = token_key_kind_bytes(key->kind);

    return bytes > 0 ? 2 * (size_t)bytes : (size_t)EVP_PKEY_get_size(key->public_key);
}

static bool is_elliptic(const struct token_key *key)
{
    return key->kind >= TOKEN_KEY_P256 && key->kind <= TOKEN_KEY_P521;
}

static bool begin(EVP_MD_CTX *context, const struct token_key *key, enum token_algorithm algorithm)
{
    EVP_PKEY_CTX *details = NULL;

    if (!context || EVP_DigestVerifyInit(context, &details, token_algorithm_digest(algorithm), NULL,
                                         key->public_key) != 1)
        return false;
    return !token_algorithm_is_pss(algorithm) ||
           (EVP_PKEY_CTX_set_rsa_padding(details, RSA_PKCS1_PSS_PADDING) == 1 &&
            EVP_PKEY_CTX_set_rsa_pss_saltlen(details, RSA_PSS_SALTLEN_DIGEST) == 1);
}

static int verify_public(const struct token_key *key, enum token_algorithm algorithm,
                         struct sl_slice text, struct sl_slice signature)
{
    unsigned char der[ECDSA_DER_BYTES];
    EVP_MD_CTX *context;
    int r = -ENOMEM;

    if (signature.size != signature_bytes(key))
        return -EBADMSG;
    if (is_elliptic(key)) {
        int size = ecdsa_to_der(signature, der);

        if (size <= 0)
            return size < 0 ? size : -EBADMSG;
        signature = sl_slice((const char *)der, (size_t)size);
    }
    context = EVP_MD_CTX_new();
    if (begin(context, key, algorithm))
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
    return key->kind == TOKEN_KEY_SECRET ? verify_hmac(key->hmac[algorithm], text, signature)
                                         : verify_public(key, algorithm, text, signature);
}
