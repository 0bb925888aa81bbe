/* filters/ascii.h - case-insensitive comparison of A to Z, independent of the locale. */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

static inline char sl_ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static inline char sl_ascii_upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c & ~0x20) : c;
}

static inline bool sl_ascii_equal(struct sl_slice a, struct sl_slice b)
{
    if (a.size != b.size)
        return false;
    for (size_t i = 0; i < a.size; i++) {
        if (sl_ascii_lower(a.data[i]) != sl_ascii_lower(b.data[i]))
            return false;
    }
    return true;
}

static inline bool sl_ascii_is(struct sl_slice a, const char *text)
{
    return sl_ascii_equal(a, sl_slice_str(text));
}
