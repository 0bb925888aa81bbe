/* gateway/provider/key_set.h - is what was fetched a set of keys, and is one gone of those before? */
#pragma once

#include <stdbool.h>

#include "base/failure.h"
#include "base/slice.h"
#include "gateway/provider/fetch_result.h"

/* FETCH_GOOD: a JWK set with keys that verify tokens (front/jwk_set.h), *ret_count of them; else
 * *reterr says why. */
enum fetch_result key_set_check(struct sl_slice json, unsigned *ret_count, struct failure *reterr);

/* Of two that are good: has `before` a key whose name `now` has not? */
bool key_set_lost_one(struct sl_slice before, struct sl_slice now);
