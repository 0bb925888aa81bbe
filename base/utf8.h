/* base/utf8.h - validates UTF-8 as in table 3-7 of the Unicode standard: no overlong forms, no
 * surrogates, nothing beyond U+10FFFF. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

static inline bool utf8_is_continuation(const unsigned char *at, const unsigned char *end)
{
    return at < end && (*at & 0xc0) == 0x80;
}

/* The size of the code point at `at`, which must not be ASCII; 0: invalid. */
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

/* The size of the line separator at `at`, the start of a valid code point: U+0085, U+2028 or
 * U+2029, which splitlines() of Python and others take for the end of a line. 0: not a line
 * separator. */
static inline size_t utf8_line_separator_size(const unsigned char *at, const unsigned char *end)
{
    if (at[0] == 0xc2)
        return end - at > 1 && at[1] == 0x85 ? 2 : 0;
    if (at[0] != 0xe2 || end - at < 3 || at[1] != 0x80)
        return 0;
    return at[2] == 0xa8 || at[2] == 0xa9 ? 3 : 0;
}

/* The state of the validator between two bytes: which bytes may follow. */
enum utf8_state {
    UTF8_WHOLE, /* at the beginning, or after a code point */
    UTF8_TAIL_1,
    UTF8_TAIL_2,
    UTF8_TAIL_3,
    UTF8_AFTER_E0, /* the next byte is restricted, to exclude overlong forms */
    UTF8_AFTER_ED, /* to exclude surrogates */
    UTF8_AFTER_F0,
    UTF8_AFTER_F4, /* to exclude what is beyond U+10FFFF */
    UTF8_INVALID   /* final */
};

/* Validates the next piece of a text that comes in pieces. UTF8_INVALID as soon as no continuation
 * could make the text valid. A text that ends in any state but UTF8_WHOLE is invalid, too. */
enum utf8_state utf8_read(enum utf8_state state, struct sl_slice piece);

static inline bool utf8_is_valid(struct sl_slice text)
{
    return utf8_read(UTF8_WHOLE, text) == UTF8_WHOLE;
}

/* The beginning of a valid text: at most `max_bytes`, without splitting a code point. */
static inline struct sl_slice utf8_cut(struct sl_slice text, size_t max_bytes)
{
    size_t size = text.size < max_bytes ? text.size : max_bytes;

    while (size > 0 && size < text.size && ((unsigned char)text.data[size] & 0xc0) == 0x80)
        size--;
    return sl_slice(text.data, size);
}
