/* gateway/front/token_key.h - keys that verify signatures.
 *
 * A key is read once and kept. Its type determines its algorithms: a secret HS256, HS384 and HS512,
 * an RSA public key RS and PS of each size, an elliptic one the ES of its curve, an Ed25519 key
 * EdDSA; a JSON Web Key with an `alg` only that one. It never verifies anything else, so that a
 * public key cannot be taken for a secret.
 *
 * This uses OpenSSL directly instead of cjose: cjose_jws_verify() compares an HMAC before it checks
 * the length, and reads beyond a signature that is too short (0.6.2.1, seen with valgrind), and it
 * parses the header a second time, by rules that differ from ours. Both are equally fast. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/failure.h"
#include "base/slice.h"
#include "gateway/front/token_algorithm.h"

struct token_key;

/* Reads the bytes of the file, without one newline at its end. 0; a negative errno: *reterr names
 * the file and what is wrong (missing, empty, too large for a secret, ...). */
int token_key_read_secret(const char *path, struct token_key **ret_key, struct failure *reterr);
/* Reads one public key in PEM: RSA of 2048 to 8192 bits, EC on P-256, P-384 or P-521, or
 * Ed25519. */
int token_key_read_public(const char *path, struct token_key **ret_key, struct failure *reterr);
/* Reads one public key of these kinds as a JSON Web Key (RFC 7517), including its purpose. 0;
 * -ENOTSUP: a valid key for another purpose (`oct`, encryption, another curve); -EINVAL: invalid;
 * -ENOMEM. *reterr gives the reason without naming the key. */
int token_key_from_jwk(const json_t *jwk, struct token_key **ret_key, struct failure *reterr);
void token_key_free(struct token_key *key);

bool token_key_takes(const struct token_key *key, enum token_algorithm algorithm);
/* Restricts the key to those of `algorithms`, as bits, that it supports. */
void token_key_narrow(struct token_key *key, unsigned algorithms);

/* Whether `kid` is a name of the key: that of its file, without directories and the last suffix, or
 * its `kid` in a set; for a public key also its thumbprint (RFC 7638, SHA-256, base64url), which is
 * the name of a key in a set without `kid`. */
bool token_key_is_called(const struct token_key *key, struct sl_slice kid);
const char *token_key_name(const struct token_key *key);
const char *token_key_thumbprint(const struct token_key *key); /* empty for a secret */
/* A fingerprint of what the key is, and not of its name: another one by the same name has another
 * number. The same on every gateway; from 1 to 2^63-1. */
uint64_t token_key_number(const struct token_key *key);

/* A warning for operators about this key; NULL: none. */
const char *token_key_warning(const struct token_key *key);

/* The key must support `algorithm`. 0; -EBADMSG: the signature is wrong; -ENOMEM. */
int token_key_verify(const struct token_key *key, enum token_algorithm algorithm,
                     struct sl_slice text, struct sl_slice signature);
