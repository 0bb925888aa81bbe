#include "gateway/dialects/tweet_text.h"

#include "base/buffer.h"

static const char *escape_of(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    default:
        return NULL;
    }
}

json_t *tweet_text(struct sl_slice text)
{
    struct buffer escaped = BUFFER_INIT;
    json_t *json;

    for (size_t i = 0; i < text.size; i++) {
        const char *escape = escape_of(text.data[i]);

        if (escape)
            buffer_append_str(&escaped, escape);
        else
            buffer_append_char(&escaped, text.data[i]);
    }
    json = escaped.failed ? NULL : json_stringn(escaped.size ? escaped.data : "", escaped.size);
    buffer_done(&escaped);
    return json;
}

size_t tweet_place_of(struct tweet_places *places, size_t byte)
{
    for (; places->byte < byte; places->byte++) {
        char c = places->text.data[places->byte];
        const char *escape = escape_of(c);

        if (escape)
            places->place += strlen(escape);
        else if ((c & 0xC0) != 0x80)
            places->place++;
    }
    return places->place;
}
