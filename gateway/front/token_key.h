/* gateway/front/token_key.h - one key file -> does this signature belong to this text?
 *
 * A key is read once and held. It is pinned to its algorithms by what it is: a secret to HS256,
 * HS384 and HS512, an RSA public key to RS256, a P-256 public key to ES256; it never verifies
 * anything else, so that a public key cannot be taken for a secret.
 *
 * On OpenSSL itself, for cjose, which was meant to do it, proved wanting: cjose_jws_verify() compares
 * an HMAC before it looks at the length, and reads behind a signature that is too short (0.6.2.1,
 * seen with valgrind), and it parses the header a second time, by other rules than ours. Speed is
 * no reason: both take as long as OpenSSL does. What is left of its work behind our own checks is
 * token_key_verify(). */
#pragma once

#include <stdbool.h>

#include "base/failure.h"
#include "base/slice.h"

enum token_algorithm {
    TOKEN_HS256,
    TOKEN_HS384,
    TOKEN_HS512,
    TOKEN_RS256,
    TOKEN_ES256,
    TOKEN_ALGORITHM_COUNT
};

/* By its name in a JOSE header, to the letter. false: not one of ours. */
bool token_algorithm_find(struct sl_slice name, enum token_algorithm *ret_algorithm);

struct token_key;

/* The bytes of the file without one newline at their end. 0; a negative errno: *reterr names the
 * file and what is wrong with it (missing, empty, larger than a secret can be, ...). */
int token_key_read_secret(const char *path, struct token_key **ret_key, struct failure *reterr);
/* One public key in PEM: RSA of 2048 bits or more, or EC on P-256. */
int token_key_read_public(const char *path, struct token_key **ret_key, struct failure *reterr);
void token_key_free(struct token_key *key);

bool token_key_takes(const struct token_key *key, enum token_algorithm algorithm);

/* A key answers to the name of its file, without folders and without the last suffix; a public key
 * also to its thumbprint (RFC 7638, SHA-256, base64url). */
bool token_key_is_called(const struct token_key *key, struct sl_slice kid);
const char *token_key_name(const struct token_key *key);
const char *token_key_thumbprint(const struct token_key *key); /* empty for a secret */

/* What whoever runs the server should hear about this key; NULL: nothing. */
const char *token_key_warning(const struct token_key *key);

/* `algorithm` is one that the key takes. 0; -EBADMSG: not its signature; -ENOMEM. */
int token_key_verify(const struct token_key *key, enum token_algorithm algorithm,
                     struct sl_slice text, struct sl_slice signature);
