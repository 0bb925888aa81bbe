/* urls.c - finds URLs in a text, and splits them into host and path.
 *
 * memchr(3) finds colons. From one that is followed by //, the URL is extended to both sides: the
 * scheme before it, the characters of URLs after it, without punctuation at the end. Hosts are
 * compared in lower case, without `www.`, trailing dots, user and port; nothing is decoded or
 * looked up. The operand of `url:` is treated in the same way. */
#include "filters/urls.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "filters/words_private.h"

enum { HTTP = 4, HTTPS = 5 }; /* lengths of the two schemes */

static const bool url_byte[256] = {
    ['!'] = true, ['#' ... ';'] = true, ['='] = true,         ['?' ... '['] = true,
    [']'] = true, ['_'] = true,         ['a' ... 'z'] = true, ['~'] = true,
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alphanumeric(char c)
{
    return is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

/* The start of the scheme that ends at `colon`; `colon` if there is none, or if it is part of a
 * longer word. */
static size_t scheme_start(struct sl_slice text, size_t from, size_t colon)
{
    static const size_t sizes[] = {HTTP, HTTPS};

    for (size_t i = 0; i < 2; i++) {
        size_t start = colon - sizes[i];

        if (colon - from < sizes[i] || strncasecmp(text.data + start, "https", sizes[i]) != 0)
            continue;
        if (start > 0 && (is_alphanumeric(text.data[start - 1]) || text.data[start - 1] == '_'))
            continue;
        return start;
    }
    return colon;
}

/* The end of the URL whose part after "://" begins at `at`; `at` if it is not a URL. */
static size_t rest_end(struct sl_slice text, size_t at)
{
    size_t end = at;

    while (end < text.size && url_byte[(unsigned char)text.data[end]])
        end++;
    while (end > at && memchr(".,;:!?')]", text.data[end - 1], 9))
        end--;
    for (size_t i = at; i < end; i++)
        if (is_alphanumeric(text.data[i]))
            return end;
    return at;
}

/* Splits the part after "://". */
static void split(struct sl_slice rest, struct sl_slice *ret_host, struct sl_slice *ret_path)
{
    size_t start = 0, end = 0, path_end, host_end;

    while (end < rest.size && !memchr("/?#", rest.data[end], 3))
        end++;
    path_end = end;
    if (end < rest.size && rest.data[end] == '/')
        while (path_end < rest.size && !memchr("?#", rest.data[path_end], 2))
            path_end++;
    *ret_path = sl_slice(rest.data + end, path_end - end);

    for (size_t i = 0; i < end; i++)
        if (rest.data[i] == '@')
            start = i + 1;
    host_end = end;
    while (host_end > start && is_digit(rest.data[host_end - 1]))
        host_end--;
    if (host_end > start && rest.data[host_end - 1] == ':')
        host_end--; /* a port, possibly empty */
    else
        host_end = end;
    *ret_host = sl_slice(rest.data + start, host_end - start);
}

bool sl_url_find(struct sl_slice text, size_t from, struct sl_url_span *ret_span)
{
    const char *colon;

    for (size_t at = from; at < text.size; at = (size_t)(colon - text.data) + 1) {
        size_t start, rest, end;

        colon = memchr(text.data + at, ':', text.size - at);
        if (!colon)
            return false;
        rest = (size_t)(colon - text.data) + 3;
        if (rest > text.size || colon[1] != '/' || colon[2] != '/')
            continue;
        start = scheme_start(text, from, rest - 3);
        if (start == rest - 3)
            continue;
        end = rest_end(text, rest);
        if (end == rest)
            continue;
        ret_span->start = start;
        ret_span->end = end;
        split(sl_slice(text.data + rest, end - rest), &ret_span->host, &ret_span->path);
        return true;
    }
    return false;
}

int sl_url_append_host(struct sl_slice host, struct buffer *bytes)
{
    char *room;

    while (host.size > 0 && host.data[host.size - 1] == '.')
        host.size--;
    if (host.size >= 4 && strncasecmp(host.data, "www.", 4) == 0)
        host = sl_slice_from(host, 4);
    room = buffer_reserve(bytes, host.size);
    if (!room)
        return -ENOMEM;
    for (size_t i = 0; i < host.size; i++)
        room[i] = lower(host.data[i]);
    bytes->size += host.size;
    return 0;
}

int sl_parse_url_operand(struct sl_slice operand, struct buffer *host, struct sl_slice *ret_path)
{
    struct sl_slice rest = operand, raw_host, path;
    size_t before = host->size;
    size_t end;

    if (rest.size >= HTTPS + 3 && strncasecmp(rest.data, "https://", HTTPS + 3) == 0)
        rest = sl_slice_from(rest, HTTPS + 3);
    else if (rest.size >= HTTP + 3 && strncasecmp(rest.data, "http://", HTTP + 3) == 0)
        rest = sl_slice_from(rest, HTTP + 3);
    for (size_t i = 0; i < rest.size; i++)
        if (!url_byte[(unsigned char)rest.data[i]])
            return -EINVAL;
    end = rest_end(rest, 0);
    if (end == 0)
        return -EINVAL;
    split(sl_slice(rest.data, end), &raw_host, &path);
    if (sl_url_append_host(raw_host, host) < 0)
        return -ENOMEM;
    if (host->size == before)
        return -EINVAL;
    while (path.size > 0 && path.data[path.size - 1] == '/')
        path.size--;
    *ret_path = path;
    return 0;
}
