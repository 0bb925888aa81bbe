/* gateway/dialects/basic_token.h - the token as the password of `Authorization: Basic` (RFC 7617),
 * for clients that can only be configured with a URL. */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "base/slice.h"

/* false: not such a header. *ret_jwt points into `room`, which the caller frees; absent: no
 * password, or out of memory. */
bool basic_token(struct sl_slice authorization, struct buffer *room, struct sl_slice *ret_jwt);
