/* gateway/front/farewell.h - why the server hangs up: one table for all transports.
 *
 * A client is told with a `disconnect` message, and on WebSocket by the close code as well. A row
 * with `come_back` invites it to connect again, with its cursor, after retry_ms; without, a client
 * must not try again by itself. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

enum farewell {
    FAREWELL_DRAINING,
    FAREWELL_TOKEN_EXPIRED,
    FAREWELL_TOKEN_REVOKED,
    FAREWELL_REPLACED,
    FAREWELL_TOO_SLOW,
    FAREWELL_BAD_MESSAGE,
    FAREWELL_TOO_BIG,  /* bad_message with close code 1009 */
    FAREWELL_BAD_UTF8, /* 1007 */
    FAREWELL_BAD_DATA, /* 1003 */
    FAREWELL_INTERNAL,
    FAREWELL_COUNT
};

struct farewell_row {
    const char *code;    /* "draining", ... */
    const char *reason;  /* for humans */
    uint16_t close_code; /* WebSocket */
    bool come_back;      /* whether retry_ms is sent */
};

const struct farewell_row *farewell_row(enum farewell farewell);

/* {"type":"disconnect","code":..,"reason":..,"cursor":"..","retry_ms":N}; `cursor` 0: left out;
 * retry_ms is said in rows that invite the client back only. */
void farewell_print(enum farewell farewell, uint64_t cursor, uint32_t retry_ms,
                    struct buffer *ret_json);
