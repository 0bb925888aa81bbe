/* gateway/front/token_key.h - one key -> does this signature belong to this text?
 *
 * A key is read once and held. It is pinned to its algorithms by what it is: a secret to HS256,
 * HS384 and HS512, an RSA public key to RS and PS of each size, an elliptic one to the ES of its
 * curve, one of Ed25519 to EdDSA; a JSON Web Key that has an `alg` to that one alone. It never
 * verifies anything else, so that a public key cannot be taken for a secret.
 *
 * On OpenSSL itself, for cjose, which was meant to do it, proved wanting: cjose_jws_verify()
 * compares an HMAC before it looks at the length, and reads behind a signature that is too short
 * (0.6.2.1, seen with valgrind), and it parses the header a second time, by other rules than ours.
 * Speed is no reason: both take as long as OpenSSL does. What is left of its work behind our own
 * checks is token_key_verify(). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/failure.h"
#include "base/slice.h"
#include "gateway/front/token_algorithm.h"

struct token_key;

/* The bytes of the file without one newline at their end. 0; a negative errno: *reterr names the
 * file and what is wrong with it (missing, empty, larger than a secret can be, ...). */
int token_key_read_secret(const char *path, struct token_key **ret_key, struct failure *reterr);
/* One public key in PEM: RSA of 2048 to 8192 bits, EC on P-256, P-384 or P-521, or Ed25519. */
int token_key_read_public(const char *path, struct token_key **ret_key, struct failure *reterr);
/* One public key as a JSON Web Key (RFC 7517) of the same kinds; what it says of its use counts.
 * 0; -ENOTSUP: it is a good key for something else (`oct`, for encryption, another curve); -EINVAL:
 * it is none; -ENOMEM. *reterr: the reason, without saying which key. */
int token_key_from_jwk(const json_t *jwk, struct token_key **ret_key, struct failure *reterr);
void token_key_free(struct token_key *key);

bool token_key_takes(const struct token_key *key, enum token_algorithm algorithm);
/* From now on it takes only those of `algorithms`, a bit each, that it took before. */
void token_key_narrow(struct token_key *key, unsigned algorithms);

/* A key answers to its name: of the file, without folders and without the last suffix, or its `kid`
 * in a set; a public key also to its thumbprint (RFC 7638, SHA-256, base64url), which is the name
 * of a key in a set that has none. */
bool token_key_is_called(const struct token_key *key, struct sl_slice kid);
const char *token_key_name(const struct token_key *key);
const char *token_key_thumbprint(const struct token_key *key); /* empty for a secret */
/* Of what the key is, and not of its name: another one by the same name has another number. Not 0.
 */
uint64_t token_key_number(const struct token_key *key);

/* What whoever runs the server should hear about this key; NULL: nothing. */
const char *token_key_warning(const struct token_key *key);

/* `algorithm` is one that the key takes. 0; -EBADMSG: not its signature; -ENOMEM. */
int token_key_verify(const struct token_key *key, enum token_algorithm algorithm,
                     struct sl_slice text, struct sl_slice signature);
