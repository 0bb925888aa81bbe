/* gateway/front/disconnect.h - why the server hangs up: one table for all transports.
 *
 * A client is told with a `disconnect` message, and on WebSocket by the close code as well. A row
 * with `come_back` invites it to connect again, with its cursor, after retry_ms; without, a client
 * must not try again by itself. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "src/model/cursor.h"

enum disconnect_reason {
    DISCONNECT_DRAINING,
    DISCONNECT_TOKEN_EXPIRED,
    DISCONNECT_TOKEN_REVOKED,
    DISCONNECT_REPLACED,
    DISCONNECT_TOO_SLOW,
    DISCONNECT_BAD_MESSAGE,
    DISCONNECT_UNHEARD,  /* bad_message where none is listened to */
    DISCONNECT_TOO_BIG,  /* bad_message with close code 1009 */
    DISCONNECT_BAD_UTF8, /* 1007 */
    DISCONNECT_BAD_DATA, /* 1003 */
    DISCONNECT_INTERNAL,
    DISCONNECT_BUSY,
    DISCONNECT_HOME_FULL, /* busy: no memory is left for home streams */
    DISCONNECT_COMPLETE,  /* what was asked for has an end, and this is it */
    DISCONNECT_ENDED,     /* by its owner, or by who runs the server */
    DISCONNECT_QUOTA,     /* its subject or its address has had as much today as it may */
    DISCONNECT_REASON_COUNT
};

struct disconnect_row {
    const char *code;    /* "draining", ... */
    const char *reason;  /* for humans */
    uint16_t close_code; /* WebSocket */
    bool come_back;      /* whether retry_ms is sent */
};

const struct disconnect_row *disconnect_row(enum disconnect_reason reason);

/* {"type":"disconnect","code":..,"reason":..,"cursor":"..","retry_ms":N}; `cursor` NULL: left out;
 * retry_ms is said in rows that invite the client back only. */
void disconnect_print(enum disconnect_reason reason, const struct sl_cursor *cursor,
                      uint32_t retry_ms, struct buffer *ret_json);
