/* gateway/http/websocket_handshake.h - does this request become a WebSocket, and what is it
 * answered with? (RFC 6455, section 4.2)
 *
 * For requests whose head says is_upgrade. Subprotocols, extensions and the origin are judged
 * elsewhere. */
#pragma once

#include "base/slice.h"
#include "gateway/http/http_head.h"

/* 0; -EPROTO: *refusal is the answer: 400, 405, or 426 when the client speaks another version. */
int websocket_handshake_check(const struct http_head *head, struct http_refusal *refusal);

enum { WEBSOCKET_ACCEPT_SIZE = 28 };

/* The value of Sec-WebSocket-Accept for a key that was checked, with a NUL behind it. 0; -EIO: the
 * cryptographic library has no SHA-1. */
int websocket_handshake_accept(struct sl_slice key,
                               char ret_accept[static WEBSOCKET_ACCEPT_SIZE + 1]);
