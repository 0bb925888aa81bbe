/* base/utf8.h - is this well-formed UTF-8? By table 3-7 of the Unicode standard: no overlong forms,
 * no surrogates, nothing beyond U+10FFFF. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

static inline bool utf8_is_continuation(const unsigned char *at, const unsigned char *end)
{
    return at < end && (*at & 0xc0) == 0x80;
}

/* Bytes of the code point at `at`, which is not ASCII; 0: invalid. */
static inline size_t utf8_code_point_size(const unsigned char *at, const unsigned char *end)
{
    unsigned char lead = at[0];
    unsigned char second = end - at > 1 ? at[1] : 0;

    if (lead < 0xc2 || lead > 0xf4 || !utf8_is_continuation(at + 1, end))
        return 0;
    if (lead < 0xe0)
        return 2;
    if (!utf8_is_continuation(at + 2, end))
        return 0;
    if (lead < 0xf0) {
        if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f))
            return 0;
        return 3;
    }
    if ((lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f))
        return 0;
    return utf8_is_continuation(at + 3, end) ? 4 : 0;
}

static inline bool utf8_is_valid(struct sl_slice text)
{
    const unsigned char *at = (const unsigned char *)text.data;
    const unsigned char *end = at + text.size;

    while (at < end) {
        size_t size = *at < 0x80 ? 1 : utf8_code_point_size(at, end);

        if (size == 0)
            return false;
        at += size;
    }
    return true;
}
