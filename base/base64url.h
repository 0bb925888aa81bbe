/* base/base64url.h - base64url without padding (RFC 4648, section 5). */
#pragma once

#include "base/buffer.h"
#include "base/slice.h"

void base64url_encode(struct sl_slice bytes, struct buffer *ret_text);

/* Appends the decoded bytes. Strict: no padding, no white space, no unused bits set, so that each
 * sequence of bytes has exactly one text. 0; -EINVAL: `ret_bytes` is unchanged; -ENOMEM:
 * `ret_bytes` has failed. */
int base64url_decode(struct sl_slice text, struct buffer *ret_bytes);
