/* gateway/http/websocket_handshake.h - the WebSocket handshake (RFC 6455, section 4.2).
 *
 * For requests whose head has is_upgrade. Subprotocols, extensions and the origin are checked
 * elsewhere. */
#pragma once

#include "base/slice.h"
#include "gateway/http/http_head.h"

/* 0; -EPROTO: respond with *refusal: 400, 405, or 426 if the client uses another version. */
int websocket_handshake_check(const struct http_head *head, struct http_refusal *refusal);

enum { WEBSOCKET_ACCEPT_SIZE = 28 };

/* Writes the value of Sec-WebSocket-Accept for a key that was checked, and a NUL. 0; -EIO: the
 * cryptographic library has no SHA-1. */
int websocket_handshake_accept(struct sl_slice key,
                               char ret_accept[static WEBSOCKET_ACCEPT_SIZE + 1]);
