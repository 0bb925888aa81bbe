/* json_text.c - checks and rewrites the bytes of JSON text without parsing it.
 *
 * The check processes eight bytes at a time while they are plain ASCII, else one code point at a
 * time. Neither function knows the grammar or has state: the characters in question can only occur
 * in strings, or only outside of them. */
#include "base/json_text.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

/* Whether one of eight bytes is a control character, a backslash or not ASCII. The subtractions may
 * borrow into the next byte, but only from a byte that is reported itself. */
static bool needs_a_look(const unsigned char *at)
{
    uint64_t bytes, backslash;

    memcpy(&bytes, at, sizeof(bytes));
    backslash = bytes ^ EACH_BYTE('\\');
    return ((bytes | (bytes - EACH_BYTE(0x20)) | (backslash - EACH_BYTE(1))) & EACH_BYTE(0x80)) !=
           0;
}

/* The code unit of the escape `\uXXXX` at `at`; -1: not such an escape. */
static int escaped_unit(const unsigned char *at, const unsigned char *end)
{
    int unit = 0;

    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        unsigned char c = at[i];
        unsigned char letter = c | 0x20;

        if (c >= '0' && c <= '9')
            unit = unit * 16 + (c - '0');
        else if (letter >= 'a' && letter <= 'f')
            unit = unit * 16 + (letter - 'a' + 10);
        else
            return -1;
    }
    return unit;
}

/* The number of bytes to skip at `at`, a backslash; 0: the escape means something that strings must
 * not contain. Short and malformed escapes are left to the parser; only `\\` must be skipped as a
 * whole, so that its second half is not taken for the start of another escape. */
static size_t escape_size(const unsigned char *at, const unsigned char *end)
{
    int unit = escaped_unit(at, end);

    if (unit < 0)
        return end - at > 1 && at[1] == '\\' ? 2 : 1;
    if (unit >= 0xd800 && unit <= 0xdbff) {
        int low = escaped_unit(at + 6, end);

        return low >= 0xdc00 && low <= 0xdfff ? 12 : 0;
    }
    return unit == 0 || (unit >= 0xdc00 && unit <= 0xdfff) ? 0 : 6;
}

int json_text_check(struct sl_slice text, struct json_breaks *ret_breaks, struct failure *reterr)
{
    const unsigned char *start = (const unsigned char *)(text.data ? text.data : "");
    const unsigned char *end = start + text.size;
    const unsigned char *at = start;
    struct json_breaks breaks = {false, false};
    size_t size;

    while (at < end) {
        while (end - at >= 8 && !needs_a_look(at))
            at += 8;
        if (at == end)
            break;
        if (*at >= 0x80) {
            size = utf8_code_point_size(at, end);
            if (size == 0)
                return failure_set(reterr, -EBADMSG, "not UTF-8 at byte %zu", (size_t)(at - start));
            if (utf8_line_separator_size(at, end) > 0)
                breaks.in_strings = true;
        } else if (*at == '\\') {
            size = escape_size(at, end);
            if (size == 0)
                return failure_set(reterr, -EBADMSG,
                                   "U+0000 or half a surrogate pair in a string at byte %zu",
                                   (size_t)(at - start));
        } else {
            size = 1;
            if (*at < 0x20) {
                if (*at != '\t' && *at != '\n' && *at != '\r')
                    return failure_set(reterr, -EBADMSG, "control character at byte %zu",
                                       (size_t)(at - start));
                breaks.between = true;
            }
        }
        at += size;
    }
    *ret_breaks = breaks;
    return 0;
}

void json_append_in_one_line(struct buffer *buffer, struct sl_slice json)
{
    const unsigned char *at = (const unsigned char *)json.data, *end = at + json.size;
    const unsigned char *plain = at;

    while (at < end) {
        size_t size = utf8_line_separator_size(at, end);

        if (size == 0) {
            at++;
            continue;
        }
        buffer_append(buffer, plain, (size_t)(at - plain));
        buffer_append_str(buffer, size == 2 ? "\\u0085" : at[2] == 0xa8 ? "\\u2028" : "\\u2029");
        plain = at += size;
    }
    buffer_append(buffer, plain, (size_t)(at - plain));
}
