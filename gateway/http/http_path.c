#include "gateway/http/http_path.h"

#include <errno.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 32) >= 'a' && (c | 32) <= 'f')
        return (c | 32) - 'a' + 10;
    return -1;
}

/* The byte at `at`, and the length of its encoding: 1 or 3. -1: a malformed escape. */
static int byte_at(struct sl_slice text, size_t at, size_t *ret_size)
{
    int high, low;

    *ret_size = 1;
    if (text.data[at] != '%')
        return (unsigned char)text.data[at];
    if (text.size - at < 3)
        return -1;
    high = hex_value(text.data[at + 1]);
    low = hex_value(text.data[at + 2]);
    if (high < 0 || low < 0)
        return -1;
    *ret_size = 3;
    return high << 4 | low;
}

bool http_path_is_plain(struct sl_slice path)
{
    size_t dots = 0, others = 0, size;

    for (size_t i = 1; i < path.size; i += size) {
        int c = byte_at(path, i, &size);

        if (size == 3 && (c == '/' || c < 0x20 || c == 0x7f))
            return false;
        if (c == '/' && others == 0 && dots <= 2)
            return false;
        if (c == '/')
            dots = others = 0;
        else if (c == '.')
            dots++;
        else
            others++;
    }
    return others > 0 || dots == 0 || dots > 2;
}

int http_path_decode(struct sl_slice segment, char *room, size_t room_size,
                     struct sl_slice *ret_decoded)
{
    size_t used = 0, size;

    for (size_t i = 0; i < segment.size; i += size) {
        int c = byte_at(segment, i, &size);

        if (c <= 0)
            return -EINVAL;
        if (used == room_size)
            return -ENOSPC;
        room[used++] = (char)c;
    }
    *ret_decoded = sl_slice(room, used);
    return 0;
}
