/* tests/support/jwt.h - keys, tokens and key sets as issuers make them. */
#pragma once

#include <openssl/evp.h>

#include "base/buffer.h"

/* "RSA", "P-256", "P-384", "P-521" or "ED25519". */
EVP_PKEY *jwt_key_new(const char *kind);

/* Writes the three parts, signed with the algorithm `alg` (for a public key: RS256, PS384, ES512,
 * EdDSA, ...), whatever the header says. The buffer is cleared first. */
void jwt_sign(struct buffer *jwt, const char *header, const char *claims, EVP_PKEY *key,
              const char *alg);

/* Appends the public half as a JSON Web Key, up to `more`, further members with a comma before
 * each, and the closing brace. */
void jwt_append_jwk(struct buffer *json, const EVP_PKEY *key, const char *more);
