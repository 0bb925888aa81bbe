/* base/base64url.h - bytes as text that is safe in URLs (RFC 4648, section 5), without padding. */
#pragma once

#include "base/buffer.h"
#include "base/slice.h"

void base64url_encode(struct sl_slice bytes, struct buffer *ret_text);

/* Appends the bytes. Strict: no padding, no white space, no bits left over, so that there is one
 * text for each sequence of bytes. 0; -EINVAL: `ret_bytes` is as before; -ENOMEM: it has failed. */
int base64url_decode(struct sl_slice text, struct buffer *ret_bytes);
