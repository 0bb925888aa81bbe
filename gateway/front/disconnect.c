#include "gateway/front/disconnect.h"

#include <assert.h>
#include <inttypes.h>

static const struct disconnect_row rows[DISCONNECT_REASON_COUNT] = {
    [DISCONNECT_DRAINING] = {"draining", "this server is shutting down", 1012, true},
    [DISCONNECT_TOKEN_EXPIRED] = {"token_expired", "the token has expired", 4001, true},
    [DISCONNECT_TOKEN_REVOKED] = {"token_revoked", "the token was revoked", 1008, false},
    [DISCONNECT_REPLACED] = {"replaced", "a newer connection replaced this one", 4003, false},
    [DISCONNECT_TOO_SLOW] = {"too_slow", "the client reads too slowly", 4008, true},
    [DISCONNECT_BAD_MESSAGE] = {"bad_message", "the client violated the protocol", 1002, false},
    [DISCONNECT_UNHEARD] =
        {"bad_message",
         "this stream takes no messages but another token; filters that change are "
         "for /v1/stream",
         1002, false},
    [DISCONNECT_TOO_BIG] = {"bad_message", "the message is too big", 1009, false},
    [DISCONNECT_BAD_UTF8] = {"bad_message", "the message is not UTF-8", 1007, false},
    [DISCONNECT_BAD_DATA] = {"bad_message", "binary messages are not supported", 1003, false},
    [DISCONNECT_INTERNAL] = {"internal", "internal error", 1011, true},
    [DISCONNECT_BUSY] = {"busy", "this server is reading too much at once", 1013, true},
    [DISCONNECT_HOME_FULL] = {"busy", "home streams take too much memory", 1013, true},
    [DISCONNECT_COMPLETE] = {"complete", "until is reached", 1000, false},
    [DISCONNECT_ENDED] = {"ended", "this connection was ended by its owner or an operator", 4004,
                          false},
    [DISCONNECT_QUOTA] = {"quota", "the daily quota is used up", 4012, true},
};

const struct disconnect_row *disconnect_row(enum disconnect_reason reason)
{
    assert(reason < DISCONNECT_REASON_COUNT);
    return &rows[reason];
}

void disconnect_print(enum disconnect_reason reason, const struct sl_cursor *cursor,
                      uint32_t retry_ms, struct buffer *ret_json)
{
    char text[SL_CURSOR_TEXT_SIZE];
    const struct disconnect_row *row = disconnect_row(reason);

    buffer_append_format(ret_json, "{\"type\":\"disconnect\",\"code\":\"%s\",\"reason\":\"%s\"",
                         row->code, row->reason);
    if (cursor)
        buffer_append_format(ret_json, ",\"cursor\":\"%s\"", sl_cursor_print(cursor, text));
    if (row->come_back)
        buffer_append_format(ret_json, ",\"retry_ms\":%" PRIu32, retry_ms);
    buffer_append_char(ret_json, '}');
}
