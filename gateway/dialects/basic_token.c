#include "gateway/dialects/basic_token.h"

#include "base/base64url.h"
#include "gateway/http/http.h"

/* Converts base64 to base64url: two other characters, and no padding. */
static void append_for_urls(struct sl_slice text, struct buffer *ret_text)
{
    while (text.size > 0 && text.data[text.size - 1] == '=')
        text.size--;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];

        buffer_append_char(ret_text, c == '+' ? '-' : c == '/' ? '_' : c);
    }
}

bool basic_token(struct sl_slice authorization, struct buffer *room, struct sl_slice *ret_jwt)
{
    struct buffer text = BUFFER_INIT;
    const char *colon;

    authorization = http_trim(authorization);
    if (authorization.size < 6 || !http_token_is(sl_slice(authorization.data, 5), "Basic") ||
        authorization.data[5] != ' ')
        return false;
    *ret_jwt = SL_SLICE_NONE;
    append_for_urls(http_trim(sl_slice_from(authorization, 6)), &text);
    buffer_clear(room);
    if (!text.failed && base64url_decode(buffer_slice(&text), room) == 0 && room->size > 0) {
        colon = memchr(room->data, ':', room->size);
        if (colon)
            *ret_jwt = sl_slice_from(buffer_slice(room), (size_t)(colon - room->data) + 1);
    }
    buffer_done(&text);
    return true;
}
