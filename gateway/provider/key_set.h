/* gateway/provider/key_set.h - checks that a fetched document is a set of keys that verify
 * tokens. */
#pragma once

#include "base/failure.h"
#include "base/slice.h"
#include "gateway/provider/fetch_result.h"

/* FETCH_GOOD: a JWK set with *ret_count keys that verify tokens (front/jwk_set.h); else *reterr
 * says why. */
enum fetch_result key_set_check(struct sl_slice json, unsigned *ret_count, struct failure *reterr);
