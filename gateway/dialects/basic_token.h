/* gateway/dialects/basic_token.h - the token in `Authorization: Basic` (RFC 7617), where it is the
 * password: for clients to which nothing but an address can be given. */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "base/slice.h"

/* false: it is no such header. *ret_jwt is a slice of `room`, which the caller ends; absent: there
 * is no password, or no memory. */
bool basic_token(struct sl_slice authorization, struct buffer *room, struct sl_slice *ret_jwt);
