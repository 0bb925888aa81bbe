/* url_parts.c - decodes and checks one part of a URL at a time, into a buffer of the caller.
 *
 * Bytes that could have a special meaning later are refused: escapes must be complete and not NUL,
 * numbers have no more digits than their largest value, hosts consist of the characters of names
 * and addresses. No names are looked up. */
#include "src/model/url_parts.h"

#include <errno.h>
#include <string.h>

struct sl_slice sl_url_head(struct sl_slice text, size_t size)
{
    return sl_slice(text.data, size);
}

size_t sl_url_index(struct sl_slice text, char c)
{
    const char *at = text.size > 0 ? memchr(text.data, c, text.size) : NULL;

    return at ? (size_t)(at - text.data) : text.size;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int sl_url_decode(struct sl_slice text, char *room, size_t room_size, const char *what,
                  struct failure *reterr)
{
    size_t used = 0;

    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];

        if (c == '%') {
            int high = i + 2 < text.size ? hex_digit(text.data[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(text.data[i + 2]) : -1;

            if (low < 0)
                return failure_set(reterr, -EINVAL,
                                   "the %s holds a %% that two hex digits do not follow", what);
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (c == '\0')
            return failure_set(reterr, -EINVAL, "the %s holds a NUL byte", what);
        if (used + 1 >= room_size)
            return failure_set(reterr, -EINVAL, "the %s is longer than %zu bytes", what,
                               room_size - 1);
        room[used++] = c;
    }
    room[used] = '\0';
    return 0;
}

int sl_url_number(struct sl_slice text, uint32_t max, uint32_t *ret_number)
{
    uint64_t number = 0;

    if (text.size == 0 || text.size > 10)
        return -EINVAL;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return -EINVAL;
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    }
    if (number > max)
        return -EINVAL;
    *ret_number = (uint32_t)number;
    return 0;
}

bool sl_url_is_host_char(char c, bool in_brackets)
{
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return true;
    if (c == '.' || c == '-' || c == '_')
        return true;
    return in_brackets && (c == ':' || c == '%');
}

static int parse_host(struct sl_slice text, bool in_brackets, const char *whose,
                      char host[static SL_URL_HOST_SIZE], struct failure *reterr)
{
    if (text.size == 0)
        return failure_set(reterr, -EINVAL, "the %s URL names no host", whose);
    if (text.size >= SL_URL_HOST_SIZE)
        return failure_set(reterr, -EINVAL, "the %s host is longer than %d bytes", whose,
                           SL_URL_HOST_SIZE - 1);
    for (size_t i = 0; i < text.size; i++) {
        if (!sl_url_is_host_char(text.data[i], in_brackets))
            return failure_set(reterr, -EINVAL, "the %s host holds a character that no host has",
                               whose);
    }
    memcpy(host, text.data, text.size);
    host[text.size] = '\0';
    return 0;
}

int sl_url_endpoint(struct sl_slice text, const char *whose, char host[static SL_URL_HOST_SIZE],
                    uint16_t *port, struct failure *reterr)
{
    bool in_brackets = text.size > 0 && text.data[0] == '[';
    size_t end = sl_url_index(text, in_brackets ? ']' : ':');
    uint32_t number = *port;
    struct sl_slice rest;
    int r;

    if (in_brackets) {
        if (end == text.size)
            return failure_set(reterr, -EINVAL, "the %s host lacks its closing bracket", whose);
        r = parse_host(sl_slice(text.data + 1, end - 1), true, whose, host, reterr);
        rest = sl_slice_from(text, end + 1);
    } else {
        r = parse_host(sl_url_head(text, end), false, whose, host, reterr);
        rest = sl_slice_from(text, end);
    }
    if (r < 0)
        return r;
    if (rest.size > 0 &&
        (rest.data[0] != ':' || sl_url_number(sl_slice_from(rest, 1), UINT16_MAX, &number) < 0 ||
         number == 0))
        return failure_set(reterr, -EINVAL, "the %s port is not a number from 1 to 65535", whose);
    *port = (uint16_t)number;
    return 0;
}
