#include "base/base64url.h"

#include <errno.h>
#include <stdint.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64url_encode(struct sl_slice bytes, struct buffer *ret_text)
{
    const unsigned char *at = (const unsigned char *)bytes.data;
    size_t left = bytes.size;
    char *out = buffer_reserve(ret_text, bytes.size / 3 * 4 + 4);

    if (!out)
        return;
    for (; left >= 3; left -= 3, at += 3) {
        *out++ = alphabet[at[0] >> 2];
        *out++ = alphabet[(at[0] & 3) << 4 | at[1] >> 4];
        *out++ = alphabet[(at[1] & 15) << 2 | at[2] >> 6];
        *out++ = alphabet[at[2] & 63];
    }
    if (left > 0) {
        unsigned second = left > 1 ? at[1] : 0;

        *out++ = alphabet[at[0] >> 2];
        *out++ = alphabet[(at[0] & 3) << 4 | second >> 4];
        if (left > 1)
            *out++ = alphabet[(second & 15) << 2];
    }
    ret_text->size = (size_t)(out - ret_text->data);
}

/* The value of each digit plus one; 0: not in the alphabet. */
static const uint8_t digits[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['-'] = 63, ['_'] = 64,
};

int base64url_decode(struct sl_slice text, struct buffer *ret_bytes)
{
    const unsigned char *at = (const unsigned char *)text.data;
    char *out = buffer_reserve(ret_bytes, text.size / 4 * 3 + 3);
    size_t left = text.size;
    uint32_t bits = 0;

    if (!out)
        return -ENOMEM;
    for (; left >= 4; left -= 4, at += 4) {
        uint32_t a = digits[at[0]], b = digits[at[1]], c = digits[at[2]], d = digits[at[3]];

        if (!a || !b || !c || !d)
            return -EINVAL;
        bits = (a - 1) << 18 | (b - 1) << 12 | (c - 1) << 6 | (d - 1);
        *out++ = (char)(bits >> 16);
        *out++ = (char)(bits >> 8);
        *out++ = (char)bits;
    }
    if (left == 1)
        return -EINVAL;
    if (left > 1) {
        uint32_t a = digits[at[0]], b = digits[at[1]], c = left > 2 ? digits[at[2]] : 1;

        if (!a || !b || !c)
            return -EINVAL;
        bits = (a - 1) << 18 | (b - 1) << 12 | (c - 1) << 6;
        *out++ = (char)(bits >> 16);
        if (left > 2)
            *out++ = (char)(bits >> 8);
        if (bits & (left > 2 ? 0xff : 0xffff)) /* bits beyond the last byte */
            return -EINVAL;
    }
    ret_bytes->size = (size_t)(out - ret_bytes->data);
    return 0;
}
