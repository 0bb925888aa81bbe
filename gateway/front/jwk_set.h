/* gateway/front/jwk_set.h - reads the keys that verify tokens from a JSON Web Key Set (RFC 7517).
 *
 * The input is untrusted: at most JWK_SET_MAX_BYTES of strict JSON, an object with `keys`, a list
 * of at most JWK_SET_MAX_KEYS. RSA keys of 2048 to 8192 bits, EC keys on P-256, P-384 and P-521,
 * and OKP Ed25519 keys are accepted, unless `use`, `key_ops` or `alg` say that they have another
 * purpose; `alg` restricts a key to that algorithm. `oct` and private keys are never accepted.
 * Other keys are skipped and counted, with the reason for the first one. A set without any
 * acceptable key is invalid, because nobody intends to remove all keys.
 *
 * The caller must use the keys of a set for one issuer only (token.c). Reading the largest set
 * takes about 30 ms. */
#pragma once

#include "base/buffer.h"
#include "base/failure.h"
#include "base/slice.h"
#include "gateway/front/token_key.h"

enum { JWK_SET_MAX_BYTES = 262144, JWK_SET_MAX_KEYS = 128 };

struct jwk_set;

/* 0; -EINVAL, -E2BIG or -ENOMEM: *reterr says why, as a sentence about "the set". */
int jwk_set_parse(struct sl_slice json, struct jwk_set **ret_set, struct failure *reterr);
/* Reads the bytes of a file, at most one more than a set may have. 0; a negative errno: *reterr
 * names the file. Blocks on the disk. */
int jwk_set_load(const char *path, struct buffer *content, struct failure *reterr);
void jwk_set_free(struct jwk_set *set);

/* At least one. A key's name is its kid, or its thumbprint (token_key_name()). */
unsigned jwk_set_count(const struct jwk_set *set);
struct token_key *jwk_set_key(const struct jwk_set *set, unsigned n);

/* How many were skipped, and why the first one was, as in "keys[2]: its use is not sig"; NULL:
 * none. */
unsigned jwk_set_skipped(const struct jwk_set *set);
const char *jwk_set_skipped_why(const struct jwk_set *set);
