/* src/model/login.h - what a login may be, when two are the same, and where its user lives.
 *
 * A login is 1 to 64 bytes of UTF-8: letters, marks and numbers of any script, and `_`. It is kept
 * as it was given; compared, and looked up, in its folded form: NFKC_Casefold without the dot that
 * the folding of a Turkish capital I leaves, which is also how filters compare logins. The folded
 * form obeys the same rule: 1 to 64 bytes of letters, marks, numbers and `_`. */
#pragma once

#include <stdint.h>

#include "base/export.h"
#include "base/failure.h"
#include "base/slice.h"

enum { SL_LOGIN_SIZE = 64 };

/* Writes the folded form, not terminated, into `room`. 0; -EINVAL: *reterr says why this is no
 * login; -ENOMEM. */
SL_EXPORT int sl_login_fold(struct sl_slice login, char room[static SL_LOGIN_SIZE],
                            struct sl_slice *ret_folded, struct failure *reterr);

/* The shard of the user who has, or would have, this login. */
SL_EXPORT uint32_t sl_login_shard(struct sl_slice folded, uint32_t shards);
