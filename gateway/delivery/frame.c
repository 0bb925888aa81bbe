/* frame.c - encodes an event, a message or a keep-alive in each of the stream formats.
 *
 * An event is encoded once for each format, for the first client that needs it; the bytes are kept
 * with the event and shared. Our own messages are appended to the buffer with which they are sent.
 * Heads of WebSocket frames are as short as possible. The sizes are limited only by those of
 * events, which the decoder limits. */
#include "gateway/delivery/frame.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "gateway/front/event_fields.h"
#include "gateway/http/websocket_reader.h"

size_t frame_websocket_head(uint8_t opcode, size_t payload_size,
                            unsigned char ret_head[static FRAME_WEBSOCKET_HEAD_SIZE])
{
    ret_head[0] = 0x80 | opcode; /* FIN */
    if (payload_size < 126) {
        ret_head[1] = (unsigned char)payload_size;
        return 2;
    }
    if (payload_size <= UINT16_MAX) {
        ret_head[1] = 126;
        ret_head[2] = (unsigned char)(payload_size >> 8);
        ret_head[3] = (unsigned char)payload_size;
        return 4;
    }
    ret_head[1] = 127;
    for (int i = 0; i < 8; i++)
        ret_head[2 + i] = (unsigned char)((uint64_t)payload_size >> (56 - 8 * i));
    return 10;
}

static void append_websocket_head(struct buffer *buffer, uint8_t opcode, size_t payload_size)
{
    unsigned char head[FRAME_WEBSOCKET_HEAD_SIZE];
    size_t head_size = frame_websocket_head(opcode, payload_size, head);

    buffer_append(buffer, head, head_size);
}

void frame_append_websocket(struct buffer *buffer, uint8_t opcode, struct sl_slice payload)
{
    append_websocket_head(buffer, opcode, payload.size);
    buffer_append_slice(buffer, payload);
}

void frame_append_close(struct buffer *buffer, uint16_t code, struct sl_slice reason)
{
    const unsigned char bytes[] = {(unsigned char)(code >> 8), (unsigned char)code};

    if (code == WEBSOCKET_CLOSE_NO_STATUS) {
        append_websocket_head(buffer, FRAME_OPCODE_CLOSE, 0);
        return;
    }
    reason = utf8_cut(reason, WEBSOCKET_CONTROL_MAX_BYTES - sizeof(bytes));
    append_websocket_head(buffer, FRAME_OPCODE_CLOSE, sizeof(bytes) + reason.size);
    buffer_append(buffer, bytes, sizeof(bytes));
    buffer_append_slice(buffer, reason);
}

void frame_append_pong(struct buffer *buffer, struct sl_slice payload)
{
    assert(payload.size <= WEBSOCKET_CONTROL_MAX_BYTES);
    append_websocket_head(buffer, FRAME_OPCODE_PONG, payload.size);
    buffer_append_slice(buffer, payload);
}

enum { CHUNK_BYTES = 24 /* around its content */ };

static void append_hexadecimal(struct buffer *buffer, size_t number)
{
    char digits[2 * sizeof(number)];
    size_t first = sizeof(digits);

    do {
        digits[--first] = "0123456789abcdef"[number % 16];
        number /= 16;
    } while (number > 0);
    buffer_append(buffer, digits + first, sizeof(digits) - first);
}

static void append_chunk(struct buffer *buffer, struct sl_slice before, struct sl_slice json,
                         struct sl_slice after)
{
    buffer_reserve(buffer, before.size + json.size + after.size + CHUNK_BYTES);
    append_hexadecimal(buffer, before.size + json.size + after.size);
    buffer_append_str(buffer, "\r\n");
    buffer_append_slice(buffer, before);
    buffer_append_slice(buffer, json);
    buffer_append_slice(buffer, after);
    buffer_append_str(buffer, "\r\n");
}

void frame_append_chunk(struct buffer *buffer, struct sl_slice payload)
{
    append_chunk(buffer, SL_SLICE(""), payload, SL_SLICE(""));
}

/* `cursor` NULL: the message must not change the client's position. */
static void append_sse(struct buffer *buffer, const char *name, const struct sl_cursor *cursor,
                       struct sl_slice json)
{
    char id[SL_CURSOR_TEXT_SIZE], before[SL_CURSOR_TEXT_SIZE + 64];
    int length;

    if (cursor)
        length = snprintf(before, sizeof(before),
                          "id: %s\nevent: %s\ndata: ", sl_cursor_print(cursor, id), name);
    else
        length = snprintf(before, sizeof(before), "event: %s\ndata: ", name);
    append_chunk(buffer, sl_slice(before, (size_t)length), json, SL_SLICE("\n\n"));
}

/* The length before a line includes its CRLF. */
static void append_delimited(struct buffer *buffer, struct sl_slice json)
{
    char before[32];
    int length = snprintf(before, sizeof(before), "%zu\r\n", json.size + 2);

    append_chunk(buffer, sl_slice(before, (size_t)length), json, SL_SLICE("\r\n"));
}

static void append_frame(struct buffer *buffer, enum stream_format format, const char *name,
                         const struct sl_cursor *cursor, struct sl_slice json)
{
    switch (format) {
    case FORMAT_WEBSOCKET:
        frame_append_websocket(buffer, FRAME_OPCODE_TEXT, json);
        break;
    case FORMAT_NDJSON:
        append_chunk(buffer, SL_SLICE(""), json, SL_SLICE("\r\n"));
        break;
    case FORMAT_DELIMITED:
        append_delimited(buffer, json);
        break;
    case FORMAT_SSE:
        append_sse(buffer, name, cursor, json);
        break;
    case FORMAT_COUNT:
        break;
    }
}

struct sl_slice frame_of_event(struct event *event, enum stream_format format)
{
    const struct sl_cursor id = {.id = event->id};
    const struct sl_cursor *cursor = event->cursor ? event->cursor : event->id ? &id : NULL;
    struct sl_slice *frame = &event->frames[format];
    struct buffer buffer = BUFFER_INIT;

    if (frame->data)
        return *frame;
    if (format == FORMAT_SSE && event->fields & EVENT_FIELDS_DIALECT)
        frame_append_chunk(&buffer, event->json);
    else
        append_frame(&buffer, format, event_kind_name(event->kind), cursor, event->json);
    if (buffer.failed) {
        buffer_done(&buffer);
        return SL_SLICE_NONE;
    }
    *frame = buffer_slice(&buffer); /* the event frees it */
    event_grow(event, buffer.capacity);
    return *frame;
}

struct sl_slice frame_inside(struct event *event, enum stream_format format)
{
    struct sl_slice frame;

    if (format == FORMAT_WEBSOCKET)
        return event->json;
    frame = frame_of_event(event, format);
    return frame.data ? frame_unchunk(frame) : frame;
}

void frame_append_message(struct buffer *buffer, enum stream_format format, const char *name,
                          struct sl_slice json)
{
    append_frame(buffer, format, name, NULL, json);
}

void frame_append_keepalive(struct buffer *buffer, enum stream_format format,
                            const struct sl_cursor *cursor)
{
    char id[SL_CURSOR_TEXT_SIZE], line[SL_CURSOR_TEXT_SIZE + 16];
    int length;

    switch (format) {
    case FORMAT_WEBSOCKET:
        append_websocket_head(buffer, FRAME_OPCODE_PING, 0);
        break;
    case FORMAT_NDJSON:
    case FORMAT_DELIMITED:
        append_chunk(buffer, SL_SLICE(""), SL_SLICE(""), SL_SLICE("\r\n"));
        break;
    case FORMAT_SSE:
        length = cursor ? snprintf(line, sizeof(line), "id: %s\n\n", sl_cursor_print(cursor, id))
                        : snprintf(line, sizeof(line), ":\n\n");
        append_chunk(buffer, sl_slice(line, (size_t)length), SL_SLICE(""), SL_SLICE(""));
        break;
    case FORMAT_COUNT:
        break;
    }
}

void frame_print_cursor(const struct sl_cursor *cursor, struct buffer *ret_json)
{
    char id[SL_CURSOR_TEXT_SIZE];

    buffer_append_format(ret_json, "{\"type\":\"cursor\",\"id\":\"%s\"}",
                         sl_cursor_print(cursor, id));
}

static void append_cursor(struct buffer *buffer, enum stream_format format,
                          const struct sl_cursor *cursor)
{
    struct buffer json = BUFFER_INIT;

    frame_print_cursor(cursor, &json);
    frame_append_message(buffer, format, "cursor", buffer_slice(&json));
    buffer->failed = buffer->failed || json.failed;
    buffer_done(&json);
}

/* Removes the chunk framing of what is at the end of `inside`, from `begin` on. */
static void unchunk_end(struct buffer *inside, size_t begin)
{
    struct sl_slice bytes;

    if (inside->failed || inside->size == begin)
        return;
    bytes = frame_unchunk(sl_slice(inside->data + begin, inside->size - begin));
    memmove(inside->data + begin, bytes.data, bytes.size);
    inside->size = begin + bytes.size;
}

struct event *frame_keepalive_event(enum stream_format format, const struct sl_cursor *cursor,
                                    bool says_cursor)
{
    struct event *event = event_new_control(EVENT_KEEPALIVE, SL_SLICE(""));
    struct buffer inside = BUFFER_INIT, frame = BUFFER_INIT;
    size_t begin;

    assert(format != FORMAT_WEBSOCKET);
    frame_append_keepalive(&inside, format, cursor);
    unchunk_end(&inside, 0);
    begin = inside.size;
    if (says_cursor)
        append_cursor(&inside, format, cursor);
    unchunk_end(&inside, begin);
    frame_append_chunk(&frame, buffer_slice(&inside));
    if (!event || inside.failed || frame.failed) {
        event_unref(event);
        event = NULL;
        buffer_done(&frame);
    } else {
        event->frames[format] = buffer_slice(&frame); /* the event frees it */
        event_grow(event, frame.capacity);
    }
    buffer_done(&inside);
    return event;
}

void frame_append_retry(struct buffer *buffer, enum stream_format format, uint32_t retry_ms)
{
    char line[32];
    int length;

    if (format != FORMAT_SSE)
        return;
    length = snprintf(line, sizeof(line), "retry: %" PRIu32 "\n\n", retry_ms);
    append_chunk(buffer, sl_slice(line, (size_t)length), SL_SLICE(""), SL_SLICE(""));
}

struct sl_slice frame_unchunk(struct sl_slice chunk)
{
    const char *line_end = memchr(chunk.data, '\n', chunk.size);
    size_t head = (size_t)(line_end - chunk.data) + 1;

    return sl_slice(chunk.data + head, chunk.size - head - 2);
}
