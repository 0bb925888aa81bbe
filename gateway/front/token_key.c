/* token_key.c - reads keys from files, with OpenSSL 3; the properties of a key.
 *
 * Everything that is slower than a verification is done when the key is read: HMAC contexts are set
 * up then and only copied later, and public keys are checked (token_key_check.c). A key's name is
 * that of its file, without the suffix. A secret is wiped when its key is freed. */
#include "gateway/front/token_key_parts.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>

#include "base/alloc.h"
#include "base/key_file.h"

enum { SECRET_GOOD_BYTES = 32 /* the number of bits of HS256: RFC 7518, section 3.2 */ };

static char *name_of_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');

    return mem_strndup(base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
}

static struct token_key *token_key_new(const char *path, enum token_key_kind kind)
{
    struct token_key *key = mem_zalloc(sizeof(*key));

    if (!key)
        return NULL;
    key->kind = kind;
    key->algorithms = token_algorithms_of(kind);
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
    for (int i = 0; i < TOKEN_HMAC_COUNT; i++)
        EVP_MAC_CTX_free(key->hmac[i]);
    EVP_PKEY_free(key->public_key);
    mem_free(key);
}

/* Looking up the algorithm and setting the key takes longer than signing a token, so it is done
 * once. */
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
    for (int i = 0; i < TOKEN_HMAC_COUNT; i++) {
        key->hmac[i] = hmac_new(key, token_algorithm_digest((enum token_algorithm)i));
        if (!key->hmac[i])
            return -ENOMEM;
    }
    return 0;
}

/* As good as a token for guessing the secret, and no better: Redis holds it for a while. */
static int number_secret(struct token_key *key)
{
    static const char label[] = "sluice key number";
    unsigned char hash[EVP_MAX_MD_SIZE];

    if (!HMAC(EVP_sha256(), key->secret.data, (int)key->secret.size, (const unsigned char *)label,
              sizeof(label) - 1, hash, NULL))
        return -ENOMEM;
    token_key_take_number(key, hash);
    return 0;
}

int token_key_read_secret(const char *path, struct token_key **ret_key, struct failure *reterr)
{
    struct token_key *key = token_key_new(path, TOKEN_KEY_SECRET);
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
    if (r == 0)
        r = number_secret(key);
    if (r < 0)
        goto out;
    *ret_key = key;
    key = NULL;
out:
    token_key_free(key);
    return r;
}

/* --- public keys --- */

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
    struct token_key *key = token_key_new(path, TOKEN_KEY_RSA);
    struct buffer content = BUFFER_INIT;
    struct failure why;
    bool is_exposed;
    int r;

    if (!key)
        return -ENOMEM;
    r = key_file_read(path, &content, &is_exposed, reterr);
    if (r == 0)
        r = parse_public_key(key, path, buffer_slice(&content), reterr);
    if (r == 0) {
        r = token_key_check_public(key, &why);
        if (r < 0 && r != -ENOMEM)
            r = failure_set(reterr, -EINVAL, "'%s' holds a key that is not taken: %s", path,
                            why.text);
    }
    if (r == 0) {
        *ret_key = key;
        key = NULL;
    }
    buffer_done(&content);
    token_key_free(key);
    return r;
}

/* --- properties ---------------------------------------------------------------------------- */

bool token_key_takes(const struct token_key *key, enum token_algorithm algorithm)
{
    return (key->algorithms >> algorithm & 1) != 0;
}

void token_key_narrow(struct token_key *key, unsigned algorithms)
{
    key->algorithms &= algorithms;
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

uint64_t token_key_number(const struct token_key *key)
{
    return key->number;
}

const char *token_key_warning(const struct token_key *key)
{
    return key->warning[0] ? key->warning : NULL;
}
