#include "gateway/http/request_head.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "gateway/http/doorway.h"

#define TOKEN_PREFIX "bearer."

enum { MAX_PARAMETERS = 64 };

size_t request_head_end(struct sl_slice bytes)
{
    const char *end = memmem(bytes.data, bytes.size, "\r\n\r\n", 4);

    return end ? (size_t)(end - bytes.data) + 4 : 0;
}

static int refuse(struct http_refusal *refusal, const char *why)
{
    return http_refuse(refusal, 400, "bad_request", NULL, "%s", why);
}

static bool is_token_char(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct sl_slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (!is_token_char((unsigned char)text.data[i]))
            return false;
    }
    return text.size > 0;
}

static bool name_is(struct sl_slice name, const char *wanted)
{
    return name.size == strlen(wanted) && strncasecmp(name.data, wanted, name.size) == 0;
}

static struct sl_slice trim(struct sl_slice text)
{
    while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = sl_slice_from(text, 1);
    while (text.size > 0 && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
        text.size--;
    return text;
}

/* Cuts the first piece off `*rest`, up to `separator`, which is dropped. */
static struct sl_slice cut(struct sl_slice *rest, char separator)
{
    const char *at = rest->size ? memchr(rest->data, separator, rest->size) : NULL;
    struct sl_slice piece = *rest;

    if (!at) {
        *rest = sl_slice(rest->data + rest->size, 0);
        return piece;
    }
    piece.size = (size_t)(at - rest->data);
    *rest = sl_slice_from(*rest, piece.size + 1);
    return piece;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

/* libwebsockets would make /b of /a/../b and of //b; here no path has two names. */
static bool has_odd_segment(struct sl_slice path)
{
    struct sl_slice rest = sl_slice_from(path, 1);

    while (rest.size > 0) {
        struct sl_slice segment = cut(&rest, '/');

        if (segment.size == 0 || sl_slice_is(segment, ".") || sl_slice_is(segment, ".."))
            return true;
    }
    return false;
}

/* Behind a last `&` or `?` libwebsockets finds a parameter that nobody sent. */
static struct sl_slice without_empty_end(struct sl_slice target)
{
    const char *mark = memchr(target.data, '?', target.size);
    size_t path_size = mark ? (size_t)(mark - target.data) : target.size;

    while (target.size > path_size + 1 && target.data[target.size - 1] == '&')
        target.size--;
    if (target.size == path_size + 1)
        target.size--;
    return target;
}

/* `;` in the query becomes %3B: libwebsockets takes it for `&`. */
static int rewrite_target(struct sl_slice target, struct buffer *head, struct http_refusal *refusal)
{
    struct sl_slice rest;
    bool in_query = false;
    unsigned parameters = 1;

    if (target.size == 0 || target.data[0] != '/')
        return refuse(refusal, "the request target must begin with /");
    target = without_empty_end(target);
    rest = target;
    if (has_odd_segment(cut(&rest, '?')))
        return http_refuse(refusal, 404, "not_found", NULL, "there is nothing at this path");
    for (size_t i = 0; i < target.size; i++) {
        unsigned char c = (unsigned char)target.data[i];

        if (c <= ' ' || c == 0x7f || c == '#')
            return refuse(refusal, "the request target holds a character that must be escaped");
        if (c == '%') {
            if (i + 2 >= target.size || !is_hex(target.data[i + 1]) || !is_hex(target.data[i + 2]))
                return refuse(refusal, "the request target holds a malformed percent escape");
            if (target.data[i + 1] == '0' && target.data[i + 2] == '0')
                return refuse(refusal, "the request target holds a NUL");
        }
        if (in_query && c == '&' && ++parameters > MAX_PARAMETERS)
            return refuse(refusal, "the query has too many parameters");
        if (in_query && c == ';')
            buffer_append_str(head, "%3B");
        else
            buffer_append_char(head, (char)c);
        in_query = in_query || c == '?';
    }
    return 0;
}

static int rewrite_request_line(struct sl_slice line, struct buffer *head,
                                struct request_head *facts, struct http_refusal *refusal)
{
    static const char *const methods[] = {"GET",    "HEAD",    "POST", "PUT",
                                          "DELETE", "OPTIONS", "PATCH"};
    struct sl_slice rest = line;
    struct sl_slice method = cut(&rest, ' ');
    struct sl_slice target = cut(&rest, ' ');
    bool known = false;
    int r;

    if (!is_token(method))
        return refuse(refusal, "the request line has no method");
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        known = known || sl_slice_is(method, methods[i]);
    if (!known)
        return http_refuse(refusal, 501, "not_implemented", NULL, "unknown method");
    facts->is_http_1_0 = sl_slice_is(rest, "HTTP/1.0");
    if (!facts->is_http_1_0 && !sl_slice_is(rest, "HTTP/1.1"))
        return http_refuse(refusal, 505, "http_version", NULL, "HTTP/1.1 or HTTP/1.0 is needed");
    buffer_append_slice(head, method);
    buffer_append_char(head, ' ');
    r = rewrite_target(target, head, refusal);
    if (r < 0)
        return r;
    buffer_append_format(head, " %.*s\r\n", SL_SLICE_ARG(rest));
    return 0;
}

static bool value_is_sound(struct sl_slice value)
{
    for (size_t i = 0; i < value.size; i++) {
        unsigned char c = (unsigned char)value.data[i];

        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static int read_content_length(struct sl_slice value, size_t max_body_bytes, size_t *ret_length,
                               struct http_refusal *refusal)
{
    size_t length = 0;

    if (value.size == 0)
        return refuse(refusal, "Content-Length is not a number");
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] < '0' || value.data[i] > '9')
            return refuse(refusal, "Content-Length is not a number");
        length = length * 10 + (size_t)(value.data[i] - '0');
        if (length > max_body_bytes)
            return http_refuse(refusal, 413, "body_too_large", NULL,
                               "the request body may have %zu bytes", max_body_bytes);
    }
    *ret_length = length;
    return 0;
}

/* Of the offered subprotocols, ours and the token, which goes into a header of its own; at a
 * foreign one libwebsockets would hang up. A second token stays: the front refuses two. Whether
 * ours was not among them, the front cannot see any more. */
static void rewrite_protocols(struct sl_slice list, struct buffer *head, bool *ret_lacks_ours)
{
    bool has_any = false, has_ours = false;
    struct sl_slice token = SL_SLICE_NONE;
    const char *separator = "Sec-WebSocket-Protocol: ";
    struct sl_slice rest = list;

    while (rest.size > 0) {
        struct sl_slice protocol = trim(cut(&rest, ','));
        bool is_token = sl_slice_starts_with(protocol, SL_SLICE(TOKEN_PREFIX));
        bool is_ours = sl_slice_is(protocol, "sluice.v1");

        has_any = has_any || protocol.size > 0;
        has_ours = has_ours || is_ours;
        if (is_token && !token.data) {
            token = sl_slice_from(protocol, strlen(TOKEN_PREFIX));
        } else if (is_token || is_ours) {
            buffer_append_str(head, separator);
            buffer_append_slice(head, protocol);
            separator = ", ";
        }
    }
    if (strcmp(separator, ", ") == 0)
        buffer_append_str(head, "\r\n");
    *ret_lacks_ours = has_any && !has_ours;
    if (token.data)
        buffer_append_format(head, DOORWAY_TOKEN_HEADER " %.*s\r\n", SL_SLICE_ARG(token));
}

/* Headers of which there is one at most: with a second one nobody could say which counts. */
enum single_header { HOST, CONTENT_LENGTH };

static const char *const single_headers[] = {
    [HOST] = "Host",   [CONTENT_LENGTH] = "Content-Length",
    "Authorization",   "Content-Type",
    "Idempotency-Key", "Last-Event-ID",
    "Origin",          "Sec-WebSocket-Protocol",
};

struct header_state {
    size_t max_body_bytes;
    bool is_upgrade, lacks_protocol; /* subprotocols are offered, but not ours */
    unsigned seen;                   /* a bit for each of single_headers */
    struct request_head *facts;
};

static bool has_header(const struct header_state *state, enum single_header header)
{
    return state->seen & 1u << header;
}

static int note_header(struct header_state *state, struct sl_slice name,
                       struct http_refusal *refusal)
{
    for (size_t i = 0; i < sizeof(single_headers) / sizeof(single_headers[0]); i++) {
        if (!name_is(name, single_headers[i]))
            continue;
        if (state->seen & 1u << i)
            return http_refuse(refusal, 400, "repeated_header", single_headers[i],
                               "%s is given twice", single_headers[i]);
        state->seen |= 1u << i;
    }
    return 0;
}

static int rewrite_header(struct sl_slice line, struct header_state *state, struct buffer *head,
                          struct http_refusal *refusal)
{
    struct sl_slice rest = line;
    struct sl_slice name = cut(&rest, ':');
    struct sl_slice value = trim(rest);
    int r;

    if (name.size == line.size || !is_token(name))
        return refuse(refusal, "a header line is malformed");
    if (!value_is_sound(value))
        return refuse(refusal, "a header value holds a control character");
    r = note_header(state, name, refusal);
    if (r < 0)
        return r;
    if (name_is(name, "transfer-encoding"))
        return http_refuse(refusal, 411, "length_required", NULL,
                           "a request body needs Content-Length");
    if (name_is(name, "content-length")) {
        buffer_append_str(head, "Content-Length: 0\r\n");
        return read_content_length(value, state->max_body_bytes, &state->facts->body_size, refusal);
    }
    if (name_is(name, "expect")) { /* which HTTP/1.0 does not know, RFC 9110 section 10.1.1 */
        state->facts->expects_continue =
            !state->facts->is_http_1_0 && name_is(value, "100-continue");
        return 0;
    }
    if (name_is(name, "upgrade") && (state->facts->is_http_1_0 || !name_is(value, "websocket")))
        return 0;
    state->is_upgrade = state->is_upgrade || name_is(name, "upgrade");
    if (name_is(name, "http2-settings") || name_is(name, "x-sluice-protocol-token"))
        return 0;
    if (name_is(name, "sec-websocket-protocol")) {
        rewrite_protocols(value, head, &state->lacks_protocol);
        return 0;
    }
    buffer_append_format(head, "%.*s: %.*s\r\n", SL_SLICE_ARG(name), SL_SLICE_ARG(value));
    return 0;
}

int request_head_rewrite(struct sl_slice head, size_t max_body_bytes, struct buffer *ret_head,
                         struct request_head *ret_facts, struct http_refusal *refusal)
{
    struct header_state state = {.max_body_bytes = max_body_bytes, .facts = ret_facts};
    struct sl_slice rest = sl_slice(head.data, head.size - 2); /* without the empty line */
    struct sl_slice line;
    bool is_first = true;
    int r = 0;

    *ret_facts = (struct request_head){0};
    while (rest.size > 0 && r == 0) {
        line = cut(&rest, '\n');
        if (line.size == 0 || line.data[line.size - 1] != '\r')
            return refuse(refusal, "a line of the request does not end in CRLF");
        line.size--;
        r = is_first ? rewrite_request_line(line, ret_head, ret_facts, refusal)
                     : rewrite_header(line, &state, ret_head, refusal);
        is_first = false;
    }
    if (r < 0)
        return r;
    if (!has_header(&state, HOST) && !ret_facts->is_http_1_0)
        return refuse(refusal, "Host is missing");
    if (state.is_upgrade && state.lacks_protocol)
        return http_refuse(refusal, 400, "bad_protocol", NULL,
                           "the subprotocol of this server is sluice.v1");
    /* libwebsockets would wait for the body of a PUT without a length. */
    if (!has_header(&state, CONTENT_LENGTH) && (sl_slice_starts_with(head, SL_SLICE("PUT ")) ||
                                                sl_slice_starts_with(head, SL_SLICE("PATCH "))))
        buffer_append_str(ret_head, "Content-Length: 0\r\n");
    buffer_append_str(ret_head, "\r\n");
    return ret_head->failed ? -ENOMEM : 0;
}
