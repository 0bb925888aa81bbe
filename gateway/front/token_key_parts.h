/* gateway/front/token_key_parts.h - the inside of a key, for token_key.c (from files),
 * token_key_jwk.c (from JSON), token_key_check.c (checks), and token_key_verify.c. */
#pragma once

#include <openssl/evp.h>

#include "base/buffer.h"
#include "gateway/front/token_key.h"

enum { TOKEN_HMAC_COUNT = TOKEN_HS512 + 1 };

struct token_key {
    enum token_key_kind kind;
    unsigned algorithms; /* as bits */
    char *name;
    struct buffer thumbprint;
    struct buffer secret;
    uint64_t number;                     /* by token_key_take_number() */
    EVP_MAC_CTX *hmac[TOKEN_HMAC_COUNT]; /* initialized with the secret */
    EVP_PKEY *public_key;
    char warning[FAILURE_TEXT_SIZE]; /* empty: none */
};

/* The size in bytes of a coordinate of the curve, or of an Ed25519 key; 0: neither. */
unsigned token_key_kind_bytes(enum token_key_kind kind);

/* Sets the number by a hash of what the key is. */
static inline void token_key_take_number(struct token_key *key, const unsigned char *hash)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < sizeof(number); i++)
        number = number << 8 | hash[i];
    key->number = number >> 1 | 1;
}

/* Checks key->public_key, and sets kind, algorithms, thumbprint and number. 0; -ENOTSUP, -EINVAL or
 * -ENOMEM: *reterr says why about "the key", without naming it. */
int token_key_check_public(struct token_key *key, struct failure *reterr);
