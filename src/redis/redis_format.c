#include "src/redis/redis_format.h"

#include <errno.h>
#include <string.h>

/* The size of "$18446744073709551615\r\n", and the same with a star. */
enum { HEADER_SIZE = 23 };

static char *put_header(char *at, char kind, size_t number)
{
    char digits[20];
    size_t first = sizeof(digits);

    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    *at++ = kind;
    memcpy(at, digits + first, sizeof(digits) - first);
    at += sizeof(digits) - first;
    memcpy(at, "\r\n", 2);
    return at + 2;
}

static char *put_argument(char *at, const char *data, size_t size)
{
    at = put_header(at, '$', size);
    memcpy(at, data, size);
    memcpy(at + size, "\r\n", 2);
    return at + size + 2;
}

static size_t size_of(const char *const *argv, const size_t *argvlen, int i)
{
    return argvlen ? argvlen[i] : strlen(argv[i]);
}

int sl_redis_format(struct buffer *out, int argc, const char *const *argv, const size_t *argvlen)
{
    size_t most = HEADER_SIZE;
    char *begin, *at;

    for (int i = 0; i < argc; i++)
        most += HEADER_SIZE + size_of(argv, argvlen, i) + 2;
    begin = at = buffer_reserve(out, most);
    if (!begin) {
        out->failed = false; /* its content is complete */
        return -ENOMEM;
    }
    at = put_header(at, '*', (size_t)argc);
    for (int i = 0; i < argc; i++)
        at = put_argument(at, argv[i], size_of(argv, argvlen, i));
    out->size += (size_t)(at - begin);
    return 0;
}
