/* fuzz_head.c - is the head of a request parsed correctly?
 *
 * The input is the head of a request and what follows it. Its end is searched for at once and in
 * pieces. An accepted head is parsed again by an independent parser, and compared field by
 * field. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "fuzz/front.h"
#include "gateway/http/http_head.h"

enum { MAX_BODY = 100000 };

static void check_end(struct sl_slice input, size_t end)
{
    size_t step = input.size % 7 + 1, seen = 0;

    must(end <= input.size);
    for (size_t size = 0; size < input.size; size += step) {
        char *part = mem_copy(input.data, size); /* has no byte after it */
        size_t found = http_head_end(sl_slice(part, size), seen);

        mem_free(part);
        must(found == (end && size >= end ? end : 0));
        if (found)
            break;
        seen = size;
    }
}

static void check_refusal(const struct http_refusal *refusal)
{
    static const int statuses[] = {400, 404, 411, 413, 501, 505};
    bool is_known = false;

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        is_known = is_known || refusal->status == statuses[i];
    must(is_known);
    front_check_body(refusal);
}

/* --- the other parser: searches the whole head for each header --- */

/* Returns the `nth` line of this name that has a value; without data: there is none. */
static struct sl_slice value_of(struct sl_slice head, const char *name, unsigned nth)
{
    char *line = memmem(head.data, head.size, "\r\n", 2), *end;
    size_t name_size = strlen(name);

    for (line += 2; *line != '\r'; line = end + 2) {
        struct sl_slice value;

        end = memmem(line, (size_t)(head.data + head.size - line), "\r\n", 2);
        if (strncasecmp(line, name, name_size) != 0 || line[name_size] != ':')
            continue;
        value = sl_slice(line + name_size + 1, (size_t)(end - line) - name_size - 1);
        while (value.size > 0 && strchr(" \t", value.data[0]))
            value = sl_slice_from(value, 1);
        while (value.size > 0 && strchr(" \t", value.data[value.size - 1]))
            value.size--;
        if (value.size > 0 && nth-- == 0)
            return value;
    }
    return SL_SLICE_NONE;
}

/* Whether this is one of the elements of all lines of this name. */
static bool list_has(struct sl_slice head, const char *name, const char *element)
{
    for (unsigned nth = 0;; nth++) {
        struct sl_slice value = value_of(head, name, nth);
        size_t begin = 0;

        if (!value.data)
            return false;
        for (size_t at = 0; at <= value.size; at++) {
            size_t from = begin, to = at;

            if (at < value.size && value.data[at] != ',')
                continue;
            begin = at + 1;
            while (from < to && strchr(" \t", value.data[from]))
                from++;
            while (from < to && strchr(" \t", value.data[to - 1]))
                to--;
            if (to - from == strlen(element) &&
                strncasecmp(value.data + from, element, to - from) == 0)
                return true;
        }
    }
}

static bool is_same(struct sl_slice a, struct sl_slice b)
{
    return a.size == b.size && a.data == b.data;
}

/* Of a header with many lines the last ones are kept. */
static void check_last_lines(struct sl_slice head, const char *name, const struct http_list *list)
{
    unsigned count = 0, skipped;

    while (value_of(head, name, count).data)
        count++;
    skipped = count > HTTP_LIST_LINES ? count - HTTP_LIST_LINES : 0;
    for (unsigned i = 0; i < HTTP_LIST_LINES; i++)
        must(is_same(list->lines[i], value_of(head, name, skipped + i)));
}

static void check_values(struct sl_slice head, const struct http_head *read)
{
    const struct {
        const char *name;
        struct sl_slice value;
    } firsts[] = {
        {"Authorization", read->request.authorization},
        {"Content-Type", read->request.content_type},
        {"Host", read->request.host},
        {"If-None-Match", read->request.if_none_match},
        {"Last-Event-ID", read->request.last_event_id},
        {"Origin", read->request.origin},
        {"Sec-WebSocket-Key", read->websocket_key},
        {"Sec-WebSocket-Protocol", read->request.protocols},
        {"Sec-WebSocket-Version", read->websocket_version},
    };
    struct sl_slice key = value_of(head, "Idempotency-Key", 0);

    for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++)
        must(is_same(firsts[i].value, value_of(head, firsts[i].name, 0)));
    for (unsigned i = 0; i < HTTP_LIST_LINES; i++) {
        must(is_same(read->request.accept.lines[i], value_of(head, "Accept", i)));
        must(is_same(read->request.accept_encoding.lines[i], value_of(head, "Accept-Encoding", i)));
        must(is_same(read->request.extensions.lines[i],
                     value_of(head, "Sec-WebSocket-Extensions", i)));
    }
    check_last_lines(head, "X-Forwarded-For", &read->request.forwarded_for);
    check_last_lines(head, "X-Forwarded-Proto", &read->request.forwarded_proto);
    check_last_lines(head, "Forwarded", &read->request.forwarded);
    must(key.size == read->request.idempotency_key.size);
    must(key.size == 0 || is_same(key, read->request.idempotency_key));
}

static void check_facts(struct sl_slice head, const struct http_head *read)
{
    bool is_1_0 = read->request.is_http_1_0;
    struct sl_slice length = value_of(head, "Content-Length", 0);

    must(read->request.wants_close == (is_1_0 || list_has(head, "Connection", "close")));
    must(read->connection_upgrades == list_has(head, "Connection", "upgrade"));
    must(read->request.is_upgrade == (!is_1_0 && list_has(head, "Upgrade", "websocket")));
    must(read->expects_continue == (!is_1_0 && list_has(head, "Expect", "100-continue")));
    must(!value_of(head, "Transfer-Encoding", 0).data);
    must(!value_of(head, "Content-Length", 1).data && !value_of(head, "Host", 1).data);
    must(read->body_size == (length.data ? strtoull(length.data, NULL, 10) : 0));
    must(read->body_size <= MAX_BODY);
    must(read->body_size == 0 || !list_has(head, "Content-Encoding", "gzip"));
    must(read->body_size == 0 || (read->request.method != HTTP_GET && !read->request.is_upgrade));
}

static void check_request_line(struct sl_slice head, const struct http_head *read)
{
    static const char *const methods[] = {
        [HTTP_GET] = "GET",     [HTTP_HEAD] = "HEAD",     [HTTP_POST] = "POST",
        [HTTP_PUT] = "PUT",     [HTTP_DELETE] = "DELETE", [HTTP_OPTIONS] = "OPTIONS",
        [HTTP_PATCH] = "PATCH",
    };
    const struct http_request *request = &read->request;
    struct buffer line = BUFFER_INIT;

    must(request->method < HTTP_OTHER);
    buffer_append_format(&line, "%s %.*s%s%.*s HTTP/1.%d\r\n", methods[request->method],
                         SL_SLICE_ARG(request->path), request->query.data ? "?" : "",
                         SL_SLICE_ARG(request->query), request->is_http_1_0 ? 0 : 1);
    must(sl_slice_starts_with(head, buffer_slice(&line)));
    buffer_done(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_slice input = sl_slice((const char *)data, size), head;
    struct http_refusal refusal;
    struct http_head read;
    char *copy;
    int r;

    head = sl_slice(input.data, http_head_end(input, 0));
    check_end(input, head.size);
    head.data = copy = mem_copy(input.data, head.size);
    if (head.size > 0) {
        r = http_head_read(head, MAX_BODY, &read, &refusal);
        must(r == 0 || r == -EPROTO);
        if (r < 0) {
            check_refusal(&refusal);
        } else {
            check_request_line(head, &read);
            check_values(head, &read);
            check_facts(head, &read);
        }
    }
    mem_free(copy);
    return 0;
}
