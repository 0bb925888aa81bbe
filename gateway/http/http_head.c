/* http_head.c - parses the head of a request, line by line.
 *
 * A table has a row for each relevant header. The rows are grouped by length, so that a name is
 * compared with at most four others, and most names with none. A row says how its value is read:
 * into a slot of the result, or by a function. All other headers are checked and ignored. Parsing
 * ends at the first error.
 *
 * The cost is linear in the size of the head, which the caller limits: two scans for the ends of
 * lines, and one look at each byte. tests/unit/test_http_head.c has a case for every rule, and
 * fuzz/ compares accepted heads with a parser of its own. */
#include "gateway/http/http_head.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "gateway/http/http_path.h"

enum { MAX_SAME_SIZE = 4 }; /* headers of the same length */

/* --- characters --- */

/* Classes: characters of a header name, of an escape, of a host with port, of a target without
 * escapes. */
enum { TOKEN = 1, HEX = 2, HOST = 4, PLAIN = 8 };

static const unsigned char classes[256] = {
    ['0' ... '9'] = TOKEN | HEX | HOST | PLAIN,
    ['A' ... 'F'] = TOKEN | HEX | HOST | PLAIN,
    ['a' ... 'f'] = TOKEN | HEX | HOST | PLAIN,
    ['G' ... 'Z'] = TOKEN | HOST | PLAIN,
    ['g' ... 'z'] = TOKEN | HOST | PLAIN,
    ['!'] = TOKEN | HOST | PLAIN,
    ['"'] = PLAIN,
    ['#'] = TOKEN,
    ['$'] = TOKEN | HOST | PLAIN,
    ['%'] = TOKEN | HOST,
    ['&' ... '\''] = TOKEN | HOST | PLAIN,
    ['(' ... ')'] = HOST | PLAIN,
    ['*' ... '+'] = TOKEN | HOST | PLAIN,
    [','] = HOST | PLAIN,
    ['-' ... '.'] = TOKEN | HOST | PLAIN,
    ['/'] = PLAIN,
    [':' ... ';'] = HOST | PLAIN,
    ['<'] = PLAIN,
    ['='] = HOST | PLAIN,
    ['>' ... '@'] = PLAIN,
    ['['] = HOST | PLAIN,
    ['\\'] = PLAIN,
    [']'] = HOST | PLAIN,
    ['^'] = TOKEN | PLAIN,
    ['_'] = TOKEN | HOST | PLAIN,
    ['`'] = TOKEN | PLAIN,
    ['{'] = PLAIN,
    ['|'] = TOKEN | PLAIN,
    ['}'] = PLAIN,
    ['~'] = TOKEN | HOST | PLAIN,
    [0x80 ... 0xff] = PLAIN,
};

static bool is_in(char c, unsigned class)
{
    return classes[(unsigned char)c] & class;
}

/* The number of bytes at the beginning of `text` that belong to this class. */
static size_t span(struct sl_slice text, unsigned class)
{
    size_t size = 0;

    while (size < text.size && is_in(text.data[size], class))
        size++;
    return size;
}

/* Excludes the tab. */
static bool is_control(unsigned char c)
{
    return (c < 0x20 && c != '\t') || c == 0x7f;
}

/* Whether one of these eight bytes is below 0x20, or 0x7f. Each comparison borrows from the top bit
 * of a byte; bytes beyond ASCII, in which it is set, are masked. */
static bool may_have_control(uint64_t bytes)
{
    const uint64_t ones = UINT64_MAX / 255, tops = ones << 7;
    uint64_t deletes = bytes ^ ones * 0x7f;

    return (((bytes - ones * 0x20) & ~bytes) | ((deletes - ones) & ~deletes)) & tops;
}

static bool has_control_among(const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (is_control((unsigned char)bytes[i]))
            return true;
    }
    return false;
}

/* The last eight bytes may overlap those before. */
static bool has_control(struct sl_slice text)
{
    uint64_t bytes;

    if (text.size < sizeof(bytes))
        return has_control_among(text.data, text.size);
    for (size_t i = 0; i < text.size; i += sizeof(bytes)) {
        size_t at = i + sizeof(bytes) <= text.size ? i : text.size - sizeof(bytes);

        memcpy(&bytes, text.data + at, sizeof(bytes));
        if (may_have_control(bytes) && has_control_among(text.data + at, sizeof(bytes)))
            return true;
    }
    return false;
}

/* --- the end of the head --- */

size_t http_head_end(struct sl_slice input, size_t seen)
{
    const char *begin = input.data, *end = input.data + input.size, *at;

    assert(seen <= input.size);
    for (const char *from = begin + seen; from < end; from = at + 1) {
        at = memchr(from, '\n', (size_t)(end - from));
        if (!at)
            return 0;
        if (at == begin || at[-1] != '\r' || (at - begin >= 3 && at[-2] == '\n'))
            return (size_t)(at - begin) + 1;
    }
    return 0;
}

/* --- the request line --- */

struct reading {
    struct http_head *head;
    struct http_refusal *refusal;
    size_t max_body_bytes;
    unsigned seen;   /* of enum single_header */
    bool is_encoded; /* of the body, if there is one */
};

static int refuse(const struct reading *reading, const char *why)
{
    return http_refuse(reading->refusal, 400, "bad_request", NULL, "%s", why);
}

/* Removes the text up to `separator` from `*rest`, and the separator. */
static struct sl_slice cut(struct sl_slice *rest, char separator)
{
    const char *at = memchr(rest->data, separator, rest->size);
    struct sl_slice piece = sl_slice(rest->data, at ? (size_t)(at - rest->data) : rest->size);

    *rest = sl_slice_from(*rest, piece.size + (at ? 1 : 0));
    return piece;
}

static int read_method(const struct reading *reading, struct sl_slice text)
{
    static const struct {
        struct sl_slice name;
        enum http_method method;
    } methods[] = {
        {{"GET", 3}, HTTP_GET},         {{"POST", 4}, HTTP_POST}, {{"PUT", 3}, HTTP_PUT},
        {{"DELETE", 6}, HTTP_DELETE},   {{"HEAD", 4}, HTTP_HEAD}, {{"PATCH", 5}, HTTP_PATCH},
        {{"OPTIONS", 7}, HTTP_OPTIONS},
    };

    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (sl_slice_equal(text, methods[i].name)) {
            reading->head->request.method = methods[i].method;
            return 0;
        }
    }
    if (text.size == 0 || span(text, TOKEN) < text.size)
        return refuse(reading, "the request line has no method");
    return http_refuse(reading->refusal, 501, "not_implemented", NULL, "unknown method");
}

static int check_characters(const struct reading *reading, struct sl_slice text)
{
    for (size_t i = 0; (i += span(sl_slice_from(text, i), PLAIN)) < text.size; i++) {
        if (text.data[i] != '%')
            return refuse(reading, "the request target has a character that must be escaped");
        if (text.size - i < 3 || !is_in(text.data[i + 1], HEX) || !is_in(text.data[i + 2], HEX))
            return refuse(reading, "the request target has a malformed percent escape");
        if (text.data[i + 1] == '0' && text.data[i + 2] == '0')
            return refuse(reading, "the request target has a NUL");
    }
    return 0;
}

static int read_target(const struct reading *reading, struct sl_slice target)
{
    struct http_request *request = &reading->head->request;
    struct sl_slice rest = target, path;
    int r;

    if (target.size == 0 || target.data[0] != '/')
        return refuse(reading, "the request target must begin with /");
    path = cut(&rest, '?');
    if (!http_path_is_plain(path))
        return http_refuse(reading->refusal, 404, "not_found", NULL,
                           "there is nothing at this path");
    r = check_characters(reading, path);
    if (r < 0)
        return r;
    request->path = path; /* decides how later refusals are worded: http_head_read_line() */
    r = check_characters(reading, rest);
    if (r == 0 && path.size < target.size)
        request->query = rest;
    return r;
}

static int read_version(const struct reading *reading, struct sl_slice version)
{
    bool is_1_0 = sl_slice_equal(version, SL_SLICE("HTTP/1.0"));

    if (!is_1_0 && !sl_slice_equal(version, SL_SLICE("HTTP/1.1")))
        return http_refuse(reading->refusal, 505, "http_version", NULL,
                           "HTTP/1.1 or HTTP/1.0 is needed");
    reading->head->request.is_http_1_0 = is_1_0;
    reading->head->request.wants_close = is_1_0;
    return 0;
}

static int read_request_line(const struct reading *reading, struct sl_slice line)
{
    struct sl_slice rest = line;
    struct sl_slice method = cut(&rest, ' ');
    struct sl_slice target = cut(&rest, ' ');
    int r;

    r = read_method(reading, method);
    if (r == 0)
        r = read_version(reading, rest);
    return r == 0 ? read_target(reading, target) : r;
}

/* --- headers --- */

/* Headers that may occur only once, because with two it would be ambiguous which one counts. */
enum single_header {
    REPEATABLE = 0,
    ACCESS_TOKEN = 1 << 0,
    BODY_LENGTH = 1 << 1,
    BODY_TYPE = 1 << 2,
    HOST_NAME = 1 << 3,
    IDEMPOTENCY_KEY = 1 << 4,
    LAST_EVENT_ID = 1 << 5,
    ORIGIN = 1 << 6,
    WEBSOCKET_KEY = 1 << 7,
    WEBSOCKET_PROTOCOLS = 1 << 8,
    WEBSOCKET_VERSION = 1 << 9
};

struct header_row {
    const char *name;
    enum single_header single;
    size_t slot; /* offset of its value in struct http_head */
    int (*read)(struct reading *reading, const struct header_row *row, struct sl_slice value);
};

static struct sl_slice *slot_of(const struct reading *reading, const struct header_row *row)
{
    return (struct sl_slice *)(void *)((char *)reading->head + row->slot);
}

static int read_value(struct reading *reading, const struct header_row *row, struct sl_slice value)
{
    if (value.size > 0)
        *slot_of(reading, row) = value;
    return 0;
}

static int read_even_empty(struct reading *reading, const struct header_row *row,
                           struct sl_slice value)
{
    *slot_of(reading, row) = value;
    return 0;
}

/* Keeps the first lines. Ignoring options offered in further lines is correct. */
static int read_first(struct reading *reading, const struct header_row *row, struct sl_slice value)
{
    return slot_of(reading, row)->data ? 0 : read_value(reading, row, value);
}

static int read_host(struct reading *reading, const struct header_row *row, struct sl_slice value)
{
    if (span(value, HOST) < value.size)
        return refuse(reading, "Host is malformed");
    return read_value(reading, row, value);
}

static int read_list(struct reading *reading, const struct header_row *row, struct sl_slice value)
{
    struct sl_slice *lines = slot_of(reading, row);

    if (value.size == 0)
        return 0;
    for (size_t i = 0; i < HTTP_LIST_LINES; i++) {
        if (!lines[i].data) {
            lines[i] = value;
            return 0;
        }
    }
    return http_refuse(reading->refusal, 400, "repeated_header", row->name,
                       "%s is given more than %d times", row->name, HTTP_LIST_LINES);
}

/* Keeps the last lines, for headers whose end is the trustworthy part. */
static int read_last(struct reading *reading, const struct header_row *row, struct sl_slice value)
{
    struct sl_slice *lines = slot_of(reading, row);

    if (value.size == 0)
        return 0;
    if (lines[HTTP_LIST_LINES - 1].data) {
        memmove(lines, lines + 1, (HTTP_LIST_LINES - 1) * sizeof(*lines));
        lines[HTTP_LIST_LINES - 1] = SL_SLICE_NONE;
    }
    return read_list(reading, row, value);
}

static int read_content_length(struct reading *reading, const struct header_row *row,
                               struct sl_slice value)
{
    uint64_t length = 0;

    (void)row;
    if (value.size == 0)
        return refuse(reading, "Content-Length is not a number");
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] < '0' || value.data[i] > '9')
            return refuse(reading, "Content-Length is not a number");
        length = length * 10 + (uint64_t)(value.data[i] - '0');
        if (length > reading->max_body_bytes)
            return http_refuse(reading->refusal, 413, "body_too_large", NULL,
                               "the request body may have %zu bytes", reading->max_body_bytes);
    }
    reading->head->body_size = length;
    return 0;
}

static int read_transfer_encoding(struct reading *reading, const struct header_row *row,
                                  struct sl_slice value)
{
    (void)row;
    (void)value;
    return http_refuse(reading->refusal, 411, "length_required", NULL,
                       "a request body needs Content-Length");
}

static bool names(struct sl_slice list, const char *token)
{
    while (list.size > 0) {
        if (http_token_is(http_next_element(&list, ','), token))
            return true;
    }
    return false;
}

/* Whether there is a body is known only at the end. */
static int read_content_encoding(struct reading *reading, const struct header_row *row,
                                 struct sl_slice value)
{
    (void)row;
    while (value.size > 0) {
        struct sl_slice coding = http_next_element(&value, ',');

        reading->is_encoded =
            reading->is_encoded || (coding.size > 0 && !http_token_is(coding, "identity"));
    }
    return 0;
}

static int read_connection(struct reading *reading, const struct header_row *row,
                           struct sl_slice value)
{
    struct http_head *head = reading->head;

    (void)row;
    head->request.wants_close = head->request.wants_close || names(value, "close");
    head->connection_upgrades = head->connection_upgrades || names(value, "upgrade");
    return 0;
}

/* HTTP/1.0 has neither of these two headers: RFC 9110, 7.8 and 10.1.1. Other protocols and
 * expectations are ignored. */
static int read_upgrade(struct reading *reading, const struct header_row *row,
                        struct sl_slice value)
{
    struct http_request *request = &reading->head->request;

    (void)row;
    request->is_upgrade =
        request->is_upgrade || (!request->is_http_1_0 && names(value, "websocket"));
    return 0;
}

static int read_expect(struct reading *reading, const struct header_row *row, struct sl_slice value)
{
    struct http_head *head = reading->head;

    (void)row;
    head->expects_continue =
        head->expects_continue || (!head->request.is_http_1_0 && names(value, "100-continue"));
    return 0;
}

#define ROW(name, nth, single, read, member)                                                       \
    [sizeof(name) - 1][nth] = {name, single, offsetof(struct http_head, member), read}
#define FACT(name, nth, single, read) [sizeof(name) - 1][nth] = {name, single, 0, read}

/* Grouped by length. */
static const struct header_row header_rows[][MAX_SAME_SIZE] = {
    ROW("Host", 0, HOST_NAME, read_host, request.host),
    ROW("Accept", 0, REPEATABLE, read_list, request.accept.lines),
    FACT("Expect", 1, REPEATABLE, read_expect),
    ROW("Origin", 2, ORIGIN, read_value, request.origin),
    ROW("Cookie", 3, REPEATABLE, read_first, request.cookie),
    FACT("Upgrade", 0, REPEATABLE, read_upgrade),
    FACT("Connection", 0, REPEATABLE, read_connection),
    ROW("Content-Type", 0, BODY_TYPE, read_value, request.content_type),
    ROW("Forwarded", 0, REPEATABLE, read_last, request.forwarded.lines),
    ROW("Authorization", 0, ACCESS_TOKEN, read_value, request.authorization),
    ROW("If-None-Match", 1, REPEATABLE, read_first, request.if_none_match),
    ROW("Last-Event-ID", 2, LAST_EVENT_ID, read_value, request.last_event_id),
    FACT("Content-Length", 0, BODY_LENGTH, read_content_length),
    ROW("Sec-Fetch-Site", 1, REPEATABLE, read_first, request.fetch_site),
    ROW("Accept-Encoding", 0, REPEATABLE, read_list, request.accept_encoding.lines),
    ROW("Idempotency-Key", 1, IDEMPOTENCY_KEY, read_even_empty, request.idempotency_key),
    ROW("Socket-Encoding", 3, REPEATABLE, read_first, request.socket_encoding),
    ROW("X-Forwarded-For", 2, REPEATABLE, read_last, request.forwarded_for.lines),
    ROW("X-Forwarded-Proto", 2, REPEATABLE, read_last, request.forwarded_proto.lines),
    ROW("Sec-WebSocket-Key", 0, WEBSOCKET_KEY, read_value, websocket_key),
    FACT("Content-Encoding", 0, REPEATABLE, read_content_encoding),
    FACT("Transfer-Encoding", 1, REPEATABLE, read_transfer_encoding),
    ROW("Sec-WebSocket-Version", 0, WEBSOCKET_VERSION, read_value, websocket_version),
    ROW("Sec-WebSocket-Protocol", 0, WEBSOCKET_PROTOCOLS, read_value, request.protocols),
    ROW("Access-Control-Request-Headers", 0, REPEATABLE, read_first, request.wanted_headers),
    ROW("Sec-WebSocket-Extensions", 0, REPEATABLE, read_list, request.extensions.lines),
};

/* For names of letters and dashes: setting 0x20 makes letters lower case and leaves dashes. No
 * other character that is allowed in a name is turned into one of these. */
static bool equal_ignoring_case(const char *a, const char *b, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if ((a[i] | 0x20) != (b[i] | 0x20))
            return false;
    }
    return true;
}

static const struct header_row *find_row(struct sl_slice name)
{
    const struct header_row *rows;

    if (name.size >= sizeof(header_rows) / sizeof(header_rows[0]))
        return NULL;
    rows = header_rows[name.size];
    for (size_t i = 0; i < MAX_SAME_SIZE && rows[i].name; i++) {
        if (equal_ignoring_case(name.data, rows[i].name, name.size))
            return &rows[i];
    }
    return NULL;
}

static int read_header(struct reading *reading, struct sl_slice line)
{
    struct sl_slice name = sl_slice(line.data, span(line, TOKEN)), value;
    const struct header_row *row;

    if (name.size == 0 || name.size == line.size || line.data[name.size] != ':')
        return refuse(reading, "a header line is malformed");
    value = sl_slice_from(line, name.size + 1);
    if (has_control(value))
        return refuse(reading, "a header value has a control character");
    row = find_row(name);
    if (!row)
        return 0;
    if (reading->seen & row->single)
        return http_refuse(reading->refusal, 400, "repeated_header", row->name, "%s is given twice",
                           row->name);
    reading->seen |= row->single;
    return row->read(reading, row, http_trim(value));
}

/* --- the whole head --- */

/* The next line, without its CRLF. */
static int next_line(const struct reading *reading, struct sl_slice *rest,
                     struct sl_slice *ret_line)
{
    const char *end = memchr(rest->data, '\n', rest->size);

    if (!end || end == rest->data || end[-1] != '\r')
        return refuse(reading, "a line of the request does not end in CRLF");
    *ret_line = sl_slice(rest->data, (size_t)(end - rest->data) - 1);
    *rest = sl_slice_from(*rest, ret_line->size + 2);
    return 0;
}

/* RFC 9110, 15.5.16: the response lists the supported encodings. */
static int refuse_encoding(const struct reading *reading)
{
    http_refuse(reading->refusal, 415, "bad_content_encoding", "Content-Encoding",
                "a request body must not have Content-Encoding");
    reading->refusal->accept_encoding = "identity";
    return -EPROTO;
}

/* Checks conditions that concern several lines. */
static int check_whole(const struct reading *reading)
{
    struct http_head *head = reading->head;
    const struct http_request *request = &head->request;

    if (!(reading->seen & HOST_NAME) && !request->is_http_1_0)
        return refuse(reading, "Host is missing");
    if (request->is_upgrade && head->body_size > 0)
        return refuse(reading, "a WebSocket handshake has no body");
    if (request->method == HTTP_GET && head->body_size > 0)
        return refuse(reading, "a GET request has no body");
    if (reading->is_encoded && head->body_size > 0)
        return refuse_encoding(reading);
    head->lacks_length = request->method == HTTP_POST && !(reading->seen & BODY_LENGTH);
    return 0;
}

int http_head_read(struct sl_slice head, size_t max_body_bytes, struct http_head *ret_head,
                   struct http_refusal *refusal)
{
    struct http_head result = {.text = head, .request.method = HTTP_OTHER};
    struct reading reading = {
        .head = &result, .refusal = refusal, .max_body_bytes = max_body_bytes};
    struct sl_slice rest = head, line;
    int r;

    r = next_line(&reading, &rest, &line);
    if (r == 0)
        r = read_request_line(&reading, line);
    while (r == 0 && (r = next_line(&reading, &rest, &line)) == 0 && line.size > 0)
        r = read_header(&reading, line);
    if (r == 0)
        r = check_whole(&reading);
    if (r < 0)
        return r;
    assert(rest.size == 0);
    *ret_head = result;
    return 0;
}

struct http_request http_head_read_line(struct sl_slice head)
{
    struct http_head result = {.request.method = HTTP_OTHER};
    struct http_refusal ignored;
    struct reading reading = {.head = &result, .refusal = &ignored};
    struct sl_slice line;

    if (next_line(&reading, &head, &line) == 0)
        (void)read_request_line(&reading, line);
    return result.request.path.data ? result.request : (struct http_request){.method = HTTP_OTHER};
}
