/* gateway/front/disconnect.h - the reasons for which the server ends streams: one table for all
 * stream formats.
 *
 * A client is told with a `disconnect` message, and on WebSocket also by the close code. A row with
 * `come_back` invites it to connect again after retry_ms, with its cursor; without it, a client
 * must not reconnect automatically. */
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
    DISCONNECT_UNHEARD,  /* bad_message on a stream that accepts no messages */
    DISCONNECT_TOO_BIG,  /* bad_message with close code 1009 */
    DISCONNECT_BAD_UTF8, /* 1007 */
    DISCONNECT_BAD_DATA, /* 1003 */
    DISCONNECT_INTERNAL,
    DISCONNECT_BUSY,
    DISCONNECT_HOME_FULL, /* busy: no memory is left for home streams */
    DISCONNECT_COMPLETE,  /* the requested range is complete */
    DISCONNECT_ENDED,     /* by its owner, or by the operator */
    DISCONNECT_QUOTA,     /* the subject or address has used its quota of the day */
    DISCONNECT_REASON_COUNT
};

struct disconnect_row {
    const char *code;    /* "draining", ... */
    const char *reason;  /* for humans */
    uint16_t close_code; /* WebSocket */
    bool come_back;      /* whether retry_ms is sent */
};

const struct disconnect_row *disconnect_row(enum disconnect_reason reason);

/* Writes {"type":"disconnect","code":..,"reason":..,"cursor":"..","retry_ms":N}; without `cursor`
 * if that is NULL; retry_ms only in rows with come_back. */
void disconnect_print(enum disconnect_reason reason, const struct sl_cursor *cursor,
                      uint32_t retry_ms, struct buffer *ret_json);
