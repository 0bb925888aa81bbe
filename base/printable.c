#include "base/printable.h"

#include <assert.h>

#include "base/utf8.h"

static bool is_shown(uint32_t c)
{
    if (c < 0x20 || (c >= 0x7f && c <= 0x9f))
        return false; /* control characters of ASCII and Latin-1; U+009B is CSI */
    if (c == 0x61c || c == 0x200e || c == 0x200f)
        return false; /* bidirectional marks */
    return !(c >= 0x2028 && c <= 0x202e) && !(c >= 0x2066 && c <= 0x2069);
}

static uint32_t decode(const unsigned char *at, size_t size)
{
    uint32_t c = size == 2 ? at[0] & 0x1f : size == 3 ? at[0] & 0x0f : at[0] & 0x07;

    for (size_t i = 1; i < size; i++)
        c = c << 6 | (at[i] & 0x3f);
    return c;
}

struct printable printable_first(struct sl_slice text)
{
    const unsigned char *at = (const unsigned char *)text.data;
    size_t size;
    uint32_t c;

    assert(text.size > 0);
    if (at[0] < 0x80)
        return (struct printable){1, at[0], true, is_shown(at[0])};
    size = utf8_code_point_size(at, at + text.size);
    if (size == 0)
        return (struct printable){1, 0xfffd, false, false};
    c = decode(at, size);
    return (struct printable){size, c, true, is_shown(c)};
}

size_t printable_prefix(struct sl_slice text)
{
    size_t size = 0;

    while (size < text.size) {
        struct printable first = printable_first(sl_slice_from(text, size));

        if (!first.is_shown)
            break;
        size += first.size;
    }
    return size;
}
