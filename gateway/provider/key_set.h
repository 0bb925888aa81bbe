/* gateway/provider/key_set.h - is what was fetched a set of keys that verify tokens? */
#pragma once

#include "base/failure.h"
#include "base/slice.h"
#include "gateway/provider/fetch_result.h"

/* FETCH_GOOD: a JWK set with keys that verify tokens (front/jwk_set.h), *ret_count of them; else
 * *reterr says why. */
enum fetch_result key_set_check(struct sl_slice json, unsigned *ret_count, struct failure *reterr);
