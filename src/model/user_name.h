/* src/model/user_name.h - a reference to a user, as written on the command line and in paths:
 * digits are an id; `@ada`, and anything else, is a login.
 *
 * Filters use the same rule, except that there the text may also be the id of another producer's
 * user. */
#pragma once

#include <stdint.h>

#include "base/slice.h"

/* Sets either *ret_id, or *ret_id to 0 and *ret_login to a slice of `text`, which has not been
 * checked by sl_login_fold(). 0; -EINVAL: digits that are not an id, or an empty text. */
int sl_user_name_parse(struct sl_slice text, uint64_t *ret_id, struct sl_slice *ret_login);
