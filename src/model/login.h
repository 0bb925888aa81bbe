/* src/model/login.h - logins: which are valid, how they are compared, and which shard their user is
 * in.
 *
 * A login is 1 to 64 bytes of UTF-8: letters, marks and numbers of any script, and `_`. It is
 * stored as it was given. Logins are compared and looked up in their folded form: NFKC_Casefold,
 * without the dot that folding a Turkish capital I leaves. Filters compare logins in the same way.
 * The folded form obeys the same rule: 1 to 64 bytes of letters, marks, numbers and `_`. */
#pragma once

#include <stdint.h>

#include "base/export.h"
#include "base/failure.h"
#include "base/slice.h"

enum { SL_LOGIN_SIZE = 64 };

/* Writes the folded form into `room`, without a NUL. 0; -EINVAL: not a login, *reterr says why;
 * -ENOMEM. */
SL_EXPORT int sl_login_fold(struct sl_slice login, char room[static SL_LOGIN_SIZE],
                            struct sl_slice *ret_folded, struct failure *reterr);

/* The shard of the user who has, or would have, this login. */
SL_EXPORT uint32_t sl_login_shard(struct sl_slice folded, uint32_t shards);
