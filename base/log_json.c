/* log_json.c - converts a log line `key=value ...` to a JSON object.
 *
 * One pass over the line; quoted values are unquoted first. The caller's buffer is large enough for
 * the worst case, six bytes of JSON for each byte of text, so nothing is allocated or truncated. */
#include "base/log_json.h"

#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

enum { NUMBER_DIGITS_MAX = 15 };

struct writer {
    char *room;
    size_t used;
};

static void put(struct writer *to, const char *text, size_t size)
{
    memcpy(to->room + to->used, text, size);
    to->used += size;
}

static void put_control(struct writer *to, char high, char low)
{
    char escape[6] = {'\\', 'u', '0', '0', high, low};

    put(to, escape, sizeof(escape));
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* The size of an escape \xNN or \uNNNN, as written by log_quote(); 0: not an escape. */
static size_t escape_size(const char *at, const char *end)
{
    size_t digits = 0;

    if (end - at >= 4 && at[0] == '\\')
        digits = at[1] == 'x' ? 2 : at[1] == 'u' ? 4 : 0;
    if (digits == 0 || (size_t)(end - at) < 2 + digits)
        return 0;
    for (size_t i = 0; i < digits; i++) {
        if (!is_hex(at[2 + i]))
            return 0;
    }
    return 2 + digits;
}

/* Writes one character of a value. Returns its size in the line. */
static size_t put_character(struct writer *to, const char *at, const char *end)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char c = (unsigned char)*at;
    size_t size = escape_size(at, end);

    if (size == 4) {
        put_control(to, at[2], at[3]);
        return size;
    }
    if (size > 0) {
        put(to, at, size);
        return size;
    }
    if (c < 0x20 || c == 0x7f || c == '"' || c == '\\') {
        put_control(to, digits[c >> 4], digits[c & 15]);
        return 1;
    }
    if (c < 0x80) {
        put(to, at, 1);
        return 1;
    }
    size = utf8_code_point_size((const unsigned char *)at, (const unsigned char *)end);
    if (size == 0)
        put(to, "\xef\xbf\xbd", 3);
    else
        put(to, at, size);
    return size ? size : 1;
}

static void put_string(struct writer *to, const char *at, const char *end)
{
    put(to, "\"", 1);
    while (at < end)
        at += put_character(to, at, end);
    put(to, "\"", 1);
}

/* Whether the text is a number in JSON syntax: no plus sign, no leading zeros, digits on both sides
 * of a point. */
static bool is_number(const char *at, const char *end)
{
    size_t digits = 0;
    const char *point = NULL;

    if (at < end && *at == '-')
        at++;
    if (end - at > 1 && at[0] == '0' && at[1] != '.')
        return false;
    for (const char *c = at; c < end; c++) {
        if (*c >= '0' && *c <= '9')
            digits++;
        else if (*c == '.' && !point && c > at && c + 1 < end)
            point = c;
        else
            return false;
    }
    return digits > 0 && digits <= NUMBER_DIGITS_MAX;
}

/* The end of the value at `at`: after the closing quote, or at the next space. */
static const char *end_of_value(const char *at, const char *end)
{
    const char *found;

    if (at < end && *at == '"') {
        found = memchr(at + 1, '"', (size_t)(end - at) - 1);
        return found ? found + 1 : end;
    }
    found = memchr(at, ' ', (size_t)(end - at));
    return found ? found : end;
}

static void put_value(struct writer *to, const char *at, const char *end)
{
    if (is_number(at, end))
        put(to, at, (size_t)(end - at));
    else if (end - at >= 2 && *at == '"' && end[-1] == '"')
        put_string(to, at + 1, end - 1);
    else
        put_string(to, at, end);
}

size_t log_json(struct sl_slice line, char *room)
{
    struct writer to = {room, 0};
    const char *at = line.data;
    const char *end = at + line.size;

    put(&to, "{", 1);
    while (at < end) {
        const char *equals = memchr(at, '=', (size_t)(end - at));
        const char *value_end;

        if (!equals)
            break;
        if (to.used > 1)
            put(&to, ",", 1);
        put_string(&to, at, equals);
        put(&to, ":", 1);
        value_end = end_of_value(equals + 1, end);
        put_value(&to, equals + 1, value_end);
        at = value_end;
        while (at < end && *at == ' ')
            at++;
    }
    put(&to, "}", 1);
    return to.used;
}
