/* fuzz/head_before.h - the same head by the reader that rewrites heads for libwebsockets: does it
 * come out alike, but where it is meant not to? */
#pragma once

#include "gateway/http/http_head.h"

/* `read` NULL: the head was refused. */
void head_before_compare(struct sl_slice input, struct sl_slice head, const struct http_head *read,
                         const struct http_refusal *refusal, size_t max_body_bytes);
