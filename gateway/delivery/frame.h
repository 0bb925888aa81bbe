/* gateway/delivery/frame.h - encodes an event in a stream format.
 *
 * A frame is complete: WebSocket header and payload, or HTTP chunk size, line and chunk end. It is
 * built once for each event and format, and shared by all clients. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "gateway/front/stream_request.h"
#include "gateway/intake/event.h"
#include "src/model/cursor.h"

enum { FRAME_WEBSOCKET_HEAD_SIZE = 10 };

/* The event as one frame, built on first use. Without data: out of memory. */
struct sl_slice frame_of_event(struct event *event, enum stream_format format);

/* The content of the frame: JSON, or the content of the HTTP chunk. Without data: out of memory. */
struct sl_slice frame_inside(struct event *event, enum stream_format format);

/* Indices in event->frames after those of frame_of_event(), which are indexed by enum
 * stream_format: deflated frames, also by format, and the block of compressor_open_block(). */
enum { FRAME_DEFLATED = FORMAT_COUNT, FRAME_OPEN_BLOCK = 2 * FORMAT_COUNT };
static_assert((int)FRAME_OPEN_BLOCK < (int)EVENT_FRAME_COUNT, "events have room for all of them");

/* Append a WebSocket message or an HTTP chunk with this content. */
void frame_append_websocket(struct buffer *buffer, uint8_t opcode, struct sl_slice payload);
void frame_append_chunk(struct buffer *buffer, struct sl_slice payload);

/* Appends a message of ours (not an event) as one frame; `name` is the event name in Server-Sent
 * Events. */
void frame_append_message(struct buffer *buffer, enum stream_format format, const char *name,
                          struct sl_slice json);

/* Appends a frame that keeps a quiet connection alive: a ping, a blank line, or a cursor in
 * Server-Sent Events (NULL: a comment). */
void frame_append_keepalive(struct buffer *buffer, enum stream_format format,
                            const struct sl_cursor *cursor);

/* {"type":"cursor"}, without a frame. */
void frame_print_cursor(const struct sl_cursor *cursor, struct buffer *ret_json);

/* A keep-alive for many clients of one HTTP format, in the form of an event; `says_cursor`:
 * followed by {"type":"cursor"}. The caller owns one reference; NULL: out of memory. */
struct event *frame_keepalive_event(enum stream_format format, const struct sl_cursor *cursor,
                                    bool says_cursor);

/* `retry:` in Server-Sent Events; nothing in other formats. */
void frame_append_retry(struct buffer *buffer, enum stream_format format, uint32_t retry_ms);

/* The header of an unmasked, final WebSocket frame. Returns its size. */
size_t frame_websocket_head(uint8_t opcode, size_t payload_size,
                            unsigned char ret_head[static FRAME_WEBSOCKET_HEAD_SIZE]);

enum {
    FRAME_OPCODE_TEXT = 1,
    FRAME_OPCODE_BINARY = 2,
    FRAME_OPCODE_DEFLATED_TEXT = 0x41, /* with RSV1 */
    FRAME_OPCODE_CLOSE = 8,
    FRAME_OPCODE_PING = 9,
    FRAME_OPCODE_PONG = 10
};

/* A WebSocket close frame; `reason` must be UTF-8, and is cut to 123 bytes.
 * WEBSOCKET_CLOSE_NO_STATUS: an empty frame. */
void frame_append_close(struct buffer *buffer, uint16_t code, struct sl_slice reason);
/* The answer to a ping with this payload (at most 125 bytes). */
void frame_append_pong(struct buffer *buffer, struct sl_slice payload);

/* The content of an HTTP chunk, for HTTP/1.0 clients, which do not support chunks. */
struct sl_slice frame_unchunk(struct sl_slice chunk);
