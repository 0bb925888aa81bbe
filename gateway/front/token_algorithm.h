/* gateway/front/token_algorithm.h - the signature algorithms of tokens, and the kind of key that
 * each needs.
 *
 * A key verifies only by the algorithms of its kind, so that a public key cannot be taken for a
 * secret: the header of a token only selects one of them. */
#pragma once

#include <stdbool.h>

#include <openssl/types.h>

#include "base/slice.h"

enum token_algorithm {
    TOKEN_HS256,
    TOKEN_HS384,
    TOKEN_HS512,
    TOKEN_RS256,
    TOKEN_RS384,
    TOKEN_RS512,
    TOKEN_PS256,
    TOKEN_PS384,
    TOKEN_PS512,
    TOKEN_ES256,
    TOKEN_ES384,
    TOKEN_ES512,
    TOKEN_EDDSA,
    TOKEN_ED25519, /* the same by its newer name: RFC 9864 */
    TOKEN_ALGORITHM_COUNT
};

enum token_key_kind {
    TOKEN_KEY_SECRET,
    TOKEN_KEY_RSA,
    TOKEN_KEY_P256,
    TOKEN_KEY_P384,
    TOKEN_KEY_P521,
    TOKEN_KEY_ED25519
};

/* Finds it by its exact name in a JOSE header. false: not supported. */
bool token_algorithm_find(struct sl_slice name, enum token_algorithm *ret_algorithm);
const char *token_algorithm_name(enum token_algorithm algorithm);

enum token_key_kind token_algorithm_kind(enum token_algorithm algorithm);
const EVP_MD *token_algorithm_digest(enum token_algorithm algorithm); /* NULL: EdDSA has its own */
bool token_algorithm_is_pss(enum token_algorithm algorithm);

/* All that use keys of this kind, as bits. */
unsigned token_algorithms_of(enum token_key_kind kind);
