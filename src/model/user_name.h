/* src/model/user_name.h - a user as people name one, on the command line and in paths: digits are
 * an id, `@ada` is a login, and anything else is a login, too, since the ids of this database are
 * digits.
 *
 * Filters go by the same rule; there, text may also be the id of another producer's user. */
#pragma once

#include <stdint.h>

#include "base/slice.h"

/* Fills either *ret_id, or *ret_login (a slice of `text`, which sl_login_fold() has not seen) and
 * *ret_id with 0. 0; -EINVAL: digits that are no id, or nothing. */
int sl_user_name_parse(struct sl_slice text, uint64_t *ret_id, struct sl_slice *ret_login);
