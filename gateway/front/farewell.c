#include "gateway/front/farewell.h"

#include <assert.h>
#include <inttypes.h>

static const struct farewell_row rows[FAREWELL_COUNT] = {
    [FAREWELL_DRAINING] = {"draining", "this server is shutting down", 1012, true},
    [FAREWELL_TOKEN_EXPIRED] = {"token_expired", "the token has expired", 4001, true},
    [FAREWELL_TOKEN_REVOKED] = {"token_revoked", "the token was revoked", 1008, false},
    [FAREWELL_REPLACED] = {"replaced", "a newer connection took the place of this one", 4003,
                           false},
    [FAREWELL_TOO_SLOW] = {"too_slow", "the client reads too slowly", 4008, true},
    [FAREWELL_BAD_MESSAGE] = {"bad_message", "the client broke the protocol", 1002, false},
    [FAREWELL_TOO_BIG] = {"bad_message", "the message is too big", 1009, false},
    [FAREWELL_BAD_UTF8] = {"bad_message", "the message is not UTF-8", 1007, false},
    [FAREWELL_BAD_DATA] = {"bad_message", "binary messages are not understood", 1003, false},
    [FAREWELL_INTERNAL] = {"internal", "the server had a problem of its own", 1011, true},
};

const struct farewell_row *farewell_row(enum farewell farewell)
{
    assert(farewell < FAREWELL_COUNT);
    return &rows[farewell];
}

void farewell_print(enum farewell farewell, uint64_t cursor, uint32_t retry_ms,
                    struct buffer *ret_json)
{
    const struct farewell_row *row = farewell_row(farewell);

    buffer_append_format(ret_json, "{\"type\":\"disconnect\",\"code\":\"%s\",\"reason\":\"%s\"",
                         row->code, row->reason);
    if (cursor)
        buffer_append_format(ret_json, ",\"cursor\":\"%" PRIu64 "\"", cursor);
    if (row->come_back)
        buffer_append_format(ret_json, ",\"retry_ms\":%" PRIu32, retry_ms);
    buffer_append_char(ret_json, '}');
}
