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

/* 0 to 63; -1: not in the alphabet. */
static int digit(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

int base64url_decode(struct sl_slice text, struct buffer *ret_bytes)
{
    char *out = buffer_reserve(ret_bytes, text.size / 4 * 3 + 3);
    uint32_t bits = 0; /* those read and not yet written, at the low end */
    unsigned count = 0;

    if (!out)
        return -ENOMEM;
    for (size_t i = 0; i < text.size; i++) {
        int value = digit((unsigned char)text.data[i]);

        if (value < 0)
            return -EINVAL;
        bits = bits << 6 | (uint32_t)value;
        count += 6;
        if (count >= 8) {
            count -= 8;
            *out++ = (char)(bits >> count);
            bits &= (1u << count) - 1;
        }
    }
    if (count >= 6 || bits != 0)
        return -EINVAL;
    ret_bytes->size = (size_t)(out - ret_bytes->data);
    return 0;
}
