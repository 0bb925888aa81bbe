/* stream_http.c - a stream as the body of an HTTP response.
 *
 * With zstd each piece of the body is a whole frame. With gzip the body is one member: its header
 * follows the head; then come blocks, which delivery made for all clients or stream_say.c for this
 * one; the trailer, with the checksum of all of them, comes only if the stream ends properly. No
 * state is kept here. */
#include <errno.h>

#include "gateway/delivery/frame.h"
#include "gateway/delivery/gzip.h"
#include "gateway/front/dialect.h"
#include "gateway/streams/stream.h"

static const char *const content_types[FORMAT_COUNT] = {
    [FORMAT_NDJSON] = "application/x-ndjson",
    [FORMAT_DELIMITED] = "application/x-ndjson",
    [FORMAT_SSE] = "text/event-stream",
};

static const char *const content_encodings[ENCODING_COUNT] = {
    [ENCODING_NONE] = "",
    [ENCODING_DEFLATE] = "Content-Encoding: gzip\r\n",
    [ENCODING_ZSTD] = "Content-Encoding: zstd\r\n",
    [ENCODING_ZSTD_DICTIONARY] = "Content-Encoding: zstd\r\n",
};

static const char *content_type_of(const struct stream_request *request)
{
    return request->dialect ? request->dialect->content_type : content_types[request->format];
}

static void append_body(const struct stream *stream, struct sl_slice bytes, struct buffer *buffer)
{
    if (stream->own.client.unchunked)
        buffer_append_slice(buffer, bytes);
    else
        frame_append_chunk(buffer, bytes);
}

static void append_gzip_header(const struct stream *stream, struct buffer *head)
{
    struct buffer header = BUFFER_INIT;

    gzip_append_header(&header);
    append_body(stream, buffer_slice(&header), head);
    head->failed = head->failed || header.failed;
    buffer_done(&header);
}

/* The head of a response without end, chunked unless the client uses HTTP/1.0. */
static int http_open(struct stream *stream, const struct http_head *request,
                     struct sl_slice headers)
{
    bool is_http_1_0 = request->request.is_http_1_0;
    struct buffer head = BUFFER_INIT;
    int r;

    stream->own.client.unchunked = is_http_1_0;
    buffer_append_format(&head,
                         "HTTP/1.%c 200 OK\r\n"
                         "Content-Type: %s\r\n"
                         "%s"
                         "%s"
                         "Vary: Accept-Encoding\r\n"
                         "Cache-Control: no-store, no-transform\r\n"
                         "X-Accel-Buffering: no\r\n"
                         "Sluice-Connection: %s\r\n"
                         "%.*s"
                         "\r\n",
                         is_http_1_0 ? '0' : '1', content_type_of(&stream->own.request),
                         is_http_1_0 ? "Connection: close\r\n" : "Transfer-Encoding: chunked\r\n",
                         content_encodings[stream->own.client.encoding], stream->connection_id,
                         SL_SLICE_ARG(headers));
    if (stream->own.client.encoding == ENCODING_DEFLATE)
        append_gzip_header(stream, &head);
    r = head.failed ? -ENOMEM : wire_write(&stream->wire, buffer_slice(&head));
    buffer_done(&head);
    return r;
}

/* Data that a client sends after its request is never used. */
static void http_received(struct stream *stream, char *bytes, size_t size)
{
    (void)stream;
    (void)bytes;
    (void)size;
}

/* The stream has left delivery, so nothing can follow the trailer. */
static void say_gzip_trailer(struct stream *stream)
{
    struct buffer trailer = BUFFER_INIT, frame = BUFFER_INIT;

    gzip_append_trailer(&trailer, &stream->own.client.sum);
    append_body(stream, buffer_slice(&trailer), &frame);
    if (frame.failed || trailer.failed)
        stream_end(stream, STREAM_BROKEN);
    else
        stream_say(stream, buffer_slice(&frame));
    buffer_done(&trailer);
    buffer_done(&frame);
}

static void http_say_end(struct stream *stream, const struct disconnect_row *why)
{
    (void)why; /* the message contains the reason */
    if (stream->own.client.encoding == ENCODING_DEFLATE)
        say_gzip_trailer(stream);
    if (!stream->own.client.unchunked)
        stream_say(stream, SL_SLICE("0\r\n\r\n"));
}

static void http_begin_close(struct stream *stream)
{
    wire_finish(&stream->wire);
}

static void http_ignore(struct stream *stream)
{
    (void)stream;
}

/* Data that a client sends after its request are ignored, so reading is never paused. */
static uint64_t http_pause_left_ms(const struct stream *stream)
{
    (void)stream;
    return UINT64_MAX;
}

static size_t http_kept_bytes(const struct stream *stream)
{
    (void)stream;
    return 0;
}

const struct stream_protocol http_stream_protocol = {
    .size = sizeof(struct stream),
    .open = http_open,
    .received = http_received,
    .writable = http_ignore,
    .say_end = http_say_end,
    .begin_close = http_begin_close,
    .pause_left_ms = http_pause_left_ms,
    .read_on = http_ignore,
    .kept_bytes = http_kept_bytes,
    .stop_reading = http_ignore,
    .done = http_ignore,
};
