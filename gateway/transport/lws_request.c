#include "gateway/transport/lws_request.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "gateway/http/doorway.h"

static const struct {
    enum lws_token_indexes token;
    enum http_method method;
} methods[] = {
    {WSI_TOKEN_GET_URI, HTTP_GET},     {WSI_TOKEN_POST_URI, HTTP_POST},
    {WSI_TOKEN_HEAD_URI, HTTP_HEAD},   {WSI_TOKEN_OPTIONS_URI, HTTP_OPTIONS},
    {WSI_TOKEN_PUT_URI, HTTP_PUT},     {WSI_TOKEN_DELETE_URI, HTTP_DELETE},
    {WSI_TOKEN_PATCH_URI, HTTP_PATCH},
};

/* Slices into a buffer that still grows are offsets until it no longer does. */
struct span {
    size_t offset, size;
    bool is_there;
};

static struct span copy_token(struct lws *wsi, enum lws_token_indexes token, struct buffer *room)
{
    struct span span = {.offset = room->size};
    int length = lws_hdr_total_length(wsi, token);
    char *at;

    if (length <= 0)
        return span;
    at = buffer_reserve(room, (size_t)length + 1);
    if (!at)
        return span;
    length = lws_hdr_copy(wsi, at, length + 1, token);
    if (length < 0)
        return span;
    span.size = (size_t)length;
    span.is_there = true;
    room->size += span.size;
    return span;
}

/* `name` in lower case and with its colon. */
static struct span copy_custom(struct lws *wsi, const char *name, struct buffer *room)
{
    struct span span = {.offset = room->size};
    int name_size = (int)strlen(name);
    int length = lws_hdr_custom_length(wsi, name, name_size);
    char *at;

    if (length < 0)
        return span;
    at = buffer_reserve(room, (size_t)length + 1);
    if (!at)
        return span;
    length = lws_hdr_custom_copy(wsi, at, length + 1, name, name_size);
    if (length < 0)
        return span;
    span.size = (size_t)length;
    span.is_there = true;
    room->size += span.size;
    return span;
}

static void append_encoded(struct buffer *room, unsigned char c)
{
    if ((c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || (c && strchr("-._~", c)))
        buffer_append_char(room, (char)c);
    else
        buffer_append_format(room, "%%%02X", c);
}

/* Each argument comes decoded; its first `=` is the one that counts. */
static struct span copy_query(struct lws *wsi, struct buffer *room)
{
    struct span span = {.offset = room->size};
    int total = lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_URI_ARGS);
    struct buffer argument = BUFFER_INIT;
    char *at = total > 0 ? buffer_reserve(&argument, (size_t)total + 1) : NULL;
    int length;

    for (int i = 0; at && (length = lws_hdr_copy_fragment(wsi, at, total + 1,
                                                          WSI_TOKEN_HTTP_URI_ARGS, i)) >= 0;
         i++) {
        bool in_name = true;

        if (span.is_there)
            buffer_append_char(room, '&');
        span.is_there = true;
        for (int k = 0; k < length; k++) {
            if (in_name && at[k] == '=') {
                in_name = false;
                buffer_append_char(room, '=');
            } else {
                append_encoded(room, (unsigned char)at[k]);
            }
        }
    }
    span.size = room->size - span.offset;
    if (argument.failed)
        room->failed = true;
    buffer_done(&argument);
    return span;
}

/* The doorway may have taken the token out of the list; the front wants it back in. */
static struct span copy_protocols(struct lws *wsi, struct buffer *room)
{
    struct span list = copy_token(wsi, WSI_TOKEN_PROTOCOL, room);
    size_t before = room->size;
    struct span token;

    buffer_append_str(room, list.is_there ? ", bearer." : "bearer.");
    token = copy_custom(wsi, DOORWAY_TOKEN_HEADER, room);
    if (!token.is_there) {
        room->size = before;
        return list;
    }
    list.is_there = true;
    list.size = room->size - list.offset;
    return list;
}

int lws_request_check(struct lws *wsi, struct http_refusal *refusal)
{
    static const struct {
        enum lws_token_indexes token;
        const char *name;
    } single[] = {
        {WSI_TOKEN_HOST, "Host"},
        {WSI_TOKEN_HTTP_CONTENT_LENGTH, "Content-Length"},
        {WSI_TOKEN_HTTP_AUTHORIZATION, "Authorization"},
        {WSI_TOKEN_HTTP_CONTENT_TYPE, "Content-Type"},
        {WSI_TOKEN_ORIGIN, "Origin"},
    };

    for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++) {
        if (lws_hdr_fragment_length(wsi, single[i].token, 1) > 0)
            return http_refuse(refusal, 400, "repeated_header", single[i].name, "%s is given twice",
                               single[i].name);
    }
    return 0;
}

static struct sl_slice slice_of(const struct buffer *room, struct span span)
{
    return span.is_there ? sl_slice(room->data + span.offset, span.size) : SL_SLICE_NONE;
}

int lws_request_read(struct lws *wsi, bool is_upgrade, struct buffer *room,
                     struct http_request *ret_request)
{
    struct span path = {0}, query, version, content_type, authorization, accept, accept_encoding,
                if_none_match, origin, host, last_event_id, protocols, key, connection;

    *ret_request = (struct http_request){.method = HTTP_OTHER, .is_upgrade = is_upgrade};
    buffer_clear(room);
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]) && !path.is_there; i++) {
        path = copy_token(wsi, methods[i].token, room);
        if (path.is_there)
            ret_request->method = methods[i].method;
    }
    query = copy_query(wsi, room);
    version = copy_token(wsi, WSI_TOKEN_HTTP, room);
    content_type = copy_token(wsi, WSI_TOKEN_HTTP_CONTENT_TYPE, room);
    authorization = copy_token(wsi, WSI_TOKEN_HTTP_AUTHORIZATION, room);
    accept = copy_token(wsi, WSI_TOKEN_HTTP_ACCEPT, room);
    accept_encoding = copy_token(wsi, WSI_TOKEN_HTTP_ACCEPT_ENCODING, room);
    if_none_match = copy_token(wsi, WSI_TOKEN_HTTP_IF_NONE_MATCH, room);
    origin = copy_token(wsi, WSI_TOKEN_ORIGIN, room);
    host = copy_token(wsi, WSI_TOKEN_HOST, room);
    connection = copy_token(wsi, WSI_TOKEN_CONNECTION, room);
    last_event_id = copy_custom(wsi, "last-event-id:", room);
    protocols = copy_protocols(wsi, room);
    key = copy_custom(wsi, "idempotency-key:", room);
    if (room->failed)
        return -ENOMEM;

    ret_request->path = slice_of(room, path);
    ret_request->query = slice_of(room, query);
    ret_request->content_type = slice_of(room, content_type);
    ret_request->authorization = slice_of(room, authorization);
    ret_request->accept.lines[0] = slice_of(room, accept);
    ret_request->accept_encoding = slice_of(room, accept_encoding);
    ret_request->if_none_match = slice_of(room, if_none_match);
    ret_request->origin = slice_of(room, origin);
    ret_request->host = slice_of(room, host);
    ret_request->last_event_id = slice_of(room, last_event_id);
    ret_request->protocols = slice_of(room, protocols);
    ret_request->idempotency_key = slice_of(room, key);
    ret_request->is_http_1_0 = sl_slice_is(slice_of(room, version), "HTTP/1.0");
    ret_request->wants_close =
        ret_request->is_http_1_0 || (connection.is_there && connection.size == 5 &&
                                     strncasecmp(room->data + connection.offset, "close", 5) == 0);
    return 0;
}
