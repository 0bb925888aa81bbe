/* gateway/front/token_key_parts.h - what a key is made of, for the files that make and use it:
 * token_key.c (from files), token_key_jwk.c (from JSON), token_key_check.c (is it good enough?),
 * token_key_verify.c. */
#pragma once

#include <openssl/evp.h>

#include "base/buffer.h"
#include "gateway/front/token_key.h"

enum { TOKEN_HMAC_COUNT = TOKEN_HS512 + 1 };

struct token_key {
    enum token_key_kind kind;
    unsigned algorithms; /* a bit each */
    char *name;
    struct buffer thumbprint;
    struct buffer secret;
    EVP_MAC_CTX *hmac[TOKEN_HMAC_COUNT]; /* keyed with the secret */
    EVP_PKEY *public_key;
    char warning[FAILURE_TEXT_SIZE]; /* empty: none */
};

/* Bytes of a coordinate of the curve, of an Ed25519 key; 0: neither. */
unsigned token_key_kind_bytes(enum token_key_kind kind);

/* Is key->public_key one that we take? Sets kind, algorithms and thumbprint. 0; -ENOTSUP, -EINVAL
 * or -ENOMEM: *reterr says why of "the key", without naming it. */
int token_key_check_public(struct token_key *key, struct failure *reterr);
