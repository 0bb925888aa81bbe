/* gateway/http/request_head.h - the first request's head: is it sound, and how must it be
 * put so that libwebsockets reads it as it was meant? Pure: bytes to bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "gateway/http/http.h"

/* Where the head ends (one past the empty line), or 0: not yet. */
size_t request_head_end(struct sl_slice bytes);

struct request_head {
    bool expects_continue;
    bool is_http_1_0;
    size_t body_size; /* as Content-Length says */
};

/* Rewrites a complete head into `ret_head`, with a Content-Length of 0: whoever reads the head
 * reads the body, too, and passes it on beside the head. 0; -EPROTO: *refusal is the answer;
 * -ENOMEM. */
int request_head_rewrite(struct sl_slice head, size_t max_body_bytes, struct buffer *ret_head,
                         struct request_head *ret_facts, struct http_refusal *refusal);
