/* gateway/http/websocket_deflate.h - permessage-deflate (RFC 7692): its negotiation, and inflating
 * messages of clients.
 *
 * The server compresses with the window that the client asked for, and resets its context between
 * messages if asked to. The client must always reset its context (client_no_context_takeover), so
 * that connections need no inflater of their own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "gateway/http/http.h"

enum { DEFLATE_WINDOW_BITS_MIN = 12, DEFLATE_WINDOW_BITS = 15 };

struct websocket_deflate {
    bool is_agreed;
    bool server_no_context_takeover;
    bool names_window_bits; /* the offer contains it, so the answer must */
    uint8_t window_bits;    /* of the server: DEFLATE_WINDOW_BITS_MIN to DEFLATE_WINDOW_BITS */
};

/* Chooses the first acceptable offer. An offer is declined if it is malformed, has an unknown or
 * repeated parameter or an invalid value, or requires a window smaller than
 * DEFLATE_WINDOW_BITS_MIN. */
struct websocket_deflate websocket_deflate_choose(const struct http_list *offers);

/* Appends the header that answers the offer; nothing without an agreement. */
void websocket_deflate_append_header(const struct websocket_deflate *deflate,
                                     struct buffer *headers);

/* --- messages of clients --- */

/* Serves all connections of a thread, one message at a time. */
struct websocket_inflater;

/* NULL: out of memory. */
struct websocket_inflater *websocket_inflater_new(void);
void websocket_inflater_free(struct websocket_inflater *inflater); /* NULL is allowed */

/* Returns the text of a compressed message, valid until the next call or
 * websocket_inflater_release(). 0; -EMSGSIZE: more than `max_bytes`; -EBADMSG: not deflate;
 * -EILSEQ: not UTF-8; -ENOMEM. */
int websocket_inflate(struct websocket_inflater *inflater, struct sl_slice compressed,
                      size_t max_bytes, struct sl_slice *ret_text);
/* Frees the text of the last message if it was large. */
void websocket_inflater_release(struct websocket_inflater *inflater);
