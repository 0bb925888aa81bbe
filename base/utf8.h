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

/* The size of the line separator at `at`, the start of a whole code point: U+0085, U+2028 or U+2029,
 * which splitlines() of Python and others take for the end of a line. 0: it is none. */
static inline size_t utf8_line_separator_size(const unsigned char *at, const unsigned char *end)
{
    if (at[0] == 0xc2)
        return end - at > 1 && at[1] == 0x85 ? 2 : 0;
    if (at[0] != 0xe2 || end - at < 3 || at[1] != 0x80)
        return 0;
    return at[2] == 0xa8 || at[2] == 0xa9 ? 3 : 0;
}

/* Where a reader of UTF-8 stands between two bytes: which ones it takes next. */
enum utf8_state {
    UTF8_WHOLE, /* at the beginning, or behind a code point */
    UTF8_TAIL_1,
    UTF8_TAIL_2,
    UTF8_TAIL_3,
    UTF8_AFTER_E0, /* the next byte has bounds of its own: no overlong form, */
    UTF8_AFTER_ED, /* no surrogate, */
    UTF8_AFTER_F0,
    UTF8_AFTER_F4, /* nothing beyond U+10FFFF */
    UTF8_INVALID   /* and stays so */
};

/* Reads a further piece of a text that comes in pieces. UTF8_INVALID as soon as no continuation
 * could make the text valid; a text that ends in any state but UTF8_WHOLE is not valid either. */
enum utf8_state utf8_read(enum utf8_state state, struct sl_slice piece);

static inline bool utf8_is_valid(struct sl_slice text)
{
    return utf8_read(UTF8_WHOLE, text) == UTF8_WHOLE;
}

/* The beginning of a valid text: at most `max_bytes`, no code point cut in two. */
static inline struct sl_slice utf8_cut(struct sl_slice text, size_t max_bytes)
{
    size_t size = text.size < max_bytes ? text.size : max_bytes;

    while (size > 0 && size < text.size && ((unsigned char)text.data[size] & 0xc0) == 0x80)
        size--;
    return sl_slice(text.data, size);
}
