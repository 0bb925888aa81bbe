/* gateway/http/websocket_deflate.h - permessage-deflate (RFC 7692): is it agreed on, and what a
 * compressed message of a client says.
 *
 * What is agreed: the server compresses with the window that the client asked for, and forgets what
 * it has sent between messages if it was asked to; the client always forgets
 * (client_no_context_takeover), so that a connection needs no inflater of its own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "gateway/http/http.h"

enum { DEFLATE_WINDOW_BITS_MIN = 12, DEFLATE_WINDOW_BITS = 15 };

struct websocket_deflate {
    bool is_agreed;
    bool server_no_context_takeover;
    bool names_window_bits; /* the offer does, so the answer does */
    uint8_t window_bits;    /* of the server: DEFLATE_WINDOW_BITS_MIN to DEFLATE_WINDOW_BITS */
};

/* The first offer that can be agreed to. One that is malformed, has a parameter that is not known
 * or comes twice, a value that is not allowed, or wants a window of less than
 * DEFLATE_WINDOW_BITS_MIN, is declined, and the next one looked at. */
struct websocket_deflate websocket_deflate_choose(const struct http_list *offers);

/* The header that answers the offer; nothing without an agreement. */
void websocket_deflate_append_header(const struct websocket_deflate *deflate,
                                     struct buffer *headers);

/* --- what clients compress --- */

/* For all connections of a thread, one message after the other. */
struct websocket_inflater;

/* NULL: out of memory. */
struct websocket_inflater *websocket_inflater_new(void);
void websocket_inflater_free(struct websocket_inflater *inflater); /* NULL is fine */

/* The text of a compressed message, valid until the next call or websocket_inflater_release(). 0;
 * -EMSGSIZE: it has more than `max_bytes`; -EBADMSG: it is not deflate; -EILSEQ: not UTF-8;
 * -ENOMEM. */
int websocket_inflate(struct websocket_inflater *inflater, struct sl_slice compressed,
                      size_t max_bytes, struct sl_slice *ret_text);
/* Its text is not needed any more. */
void websocket_inflater_release(struct websocket_inflater *inflater);
