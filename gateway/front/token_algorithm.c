#include "gateway/front/token_algorithm.h"

#include <stddef.h>

#include <openssl/evp.h>

static const struct {
    const char *name;
    enum token_key_kind kind;
    const EVP_MD *(*digest)(void);
} algorithms[TOKEN_ALGORITHM_COUNT] = {
    [TOKEN_HS256] = {"HS256", TOKEN_KEY_SECRET, EVP_sha256},
    [TOKEN_HS384] = {"HS384", TOKEN_KEY_SECRET, EVP_sha384},
    [TOKEN_HS512] = {"HS512", TOKEN_KEY_SECRET, EVP_sha512},
    [TOKEN_RS256] = {"RS256", TOKEN_KEY_RSA, EVP_sha256},
    [TOKEN_RS384] = {"RS384", TOKEN_KEY_RSA, EVP_sha384},
    [TOKEN_RS512] = {"RS512", TOKEN_KEY_RSA, EVP_sha512},
    [TOKEN_PS256] = {"PS256", TOKEN_KEY_RSA, EVP_sha256},
    [TOKEN_PS384] = {"PS384", TOKEN_KEY_RSA, EVP_sha384},
    [TOKEN_PS512] = {"PS512", TOKEN_KEY_RSA, EVP_sha512},
    [TOKEN_ES256] = {"ES256", TOKEN_KEY_P256, EVP_sha256},
    [TOKEN_ES384] = {"ES384", TOKEN_KEY_P384, EVP_sha384},
    [TOKEN_ES512] = {"ES512", TOKEN_KEY_P521, EVP_sha512},
    [TOKEN_EDDSA] = {"EdDSA", TOKEN_KEY_ED25519, NULL},
    [TOKEN_ED25519] = {"Ed25519", TOKEN_KEY_ED25519, NULL},
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

const char *token_algorithm_name(enum token_algorithm algorithm)
{
    return algorithms[algorithm].name;
}

enum token_key_kind token_algorithm_kind(enum token_algorithm algorithm)
{
    return algorithms[algorithm].kind;
}

const EVP_MD *token_algorithm_digest(enum token_algorithm algorithm)
{
    return algorithms[algorithm].digest ? algorithms[algorithm].digest() : NULL;
}

bool token_algorithm_is_pss(enum token_algorithm algorithm)
{
    return algorithm >= TOKEN_PS256 && algorithm <= TOKEN_PS512;
}

unsigned token_algorithms_of(enum token_key_kind kind)
{
    unsigned all = 0;

    for (unsigned i = 0; i < TOKEN_ALGORITHM_COUNT; i++) {
        if (algorithms[i].kind == kind)
            all |= 1U << i;
    }
    return all;
}
