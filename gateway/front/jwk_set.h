/* gateway/front/jwk_set.h - a JSON Web Key Set (RFC 7517) -> the keys in it that verify tokens.
 *
 * Bytes from elsewhere: at most JWK_SET_MAX_BYTES of strict JSON, an object with `keys`, a list of
 * at most JWK_SET_MAX_KEYS. Of these RSA of 2048 to 8192 bits, EC on P-256, P-384 and P-521, and
 * OKP Ed25519 are taken, unless `use`, `key_ops` or `alg` say that they are for something else;
 * `alg` pins a key to itself. `oct` is never taken, nor is a private key. What is not taken is
 * skipped and counted, with the reason of the first. A set of which nothing is left is a bad set:
 * nobody means to take all keys away.
 *
 * A set belongs to whoever read it; that its keys serve one issuer alone is up to them (token.c).
 * To read the largest set takes some 30 ms. */
#pragma once

#include "base/buffer.h"
#include "base/failure.h"
#include "base/slice.h"
#include "gateway/front/token_key.h"

enum { JWK_SET_MAX_BYTES = 262144, JWK_SET_MAX_KEYS = 128 };

struct jwk_set;

/* 0; -EINVAL, -E2BIG or -ENOMEM: *reterr says why, as a sentence about "the set". */
int jwk_set_parse(struct sl_slice json, struct jwk_set **ret_set, struct failure *reterr);
/* The bytes of a file, of which one more than a set may have is enough. 0; a negative errno:
 * *reterr names the file. Blocks on the disk. */
int jwk_set_load(const char *path, struct buffer *content, struct failure *reterr);
void jwk_set_free(struct jwk_set *set);

/* At least one. A key's name is its kid, or its thumbprint (token_key_name()). */
unsigned jwk_set_count(const struct jwk_set *set);
struct token_key *jwk_set_key(const struct jwk_set *set, unsigned n);

/* How many were skipped, and why the first was, as in "keys[2]: its use is not sig"; NULL: none. */
unsigned jwk_set_skipped(const struct jwk_set *set);
const char *jwk_set_skipped_why(const struct jwk_set *set);
