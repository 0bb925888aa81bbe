/* gateway/delivery/frame.h - one event in one stream format: bytes to bytes.
 *
 * A frame is complete: WebSocket header and payload, or HTTP chunk size, line and chunk end. It is
 * built once per event and format and then shared by every client that is owed it. */
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

/* The event as one frame, built when it is first asked for. Without data: out of memory. */
struct sl_slice frame_of_event(struct event *event, enum stream_format format);

/* What is in the frame: JSON, or what the HTTP chunk holds. Without data: out of memory. */
struct sl_slice frame_inside(struct event *event, enum stream_format format);

/* Places in event->frames behind those of frame_of_event(), which are kept by enum stream_format:
 * deflated frames, by format, too, and the block that compressor_open_block() makes. */
enum { FRAME_DEFLATED = FORMAT_COUNT, FRAME_OPEN_BLOCK = 2 * FORMAT_COUNT };
static_assert((int)FRAME_OPEN_BLOCK < (int)EVENT_FRAME_COUNT, "events have room for all of them");

/* A WebSocket message, and an HTTP chunk; `payload` is what is in them. */
void frame_append_websocket(struct buffer *buffer, uint8_t opcode, struct sl_slice payload);
void frame_append_chunk(struct buffer *buffer, struct sl_slice payload);

/* A message of ours (not an event) as one frame; `name` is the SSE event's. */
void frame_append_message(struct buffer *buffer, enum stream_format format, const char *name,
                          struct sl_slice json);

/* The frame that keeps a quiet connection alive: a ping, a blank line, or the SSE cursor (NULL: a
 * comment). */
void frame_append_keepalive(struct buffer *buffer, enum stream_format format,
                            const struct sl_cursor *cursor);

/* {"type":"cursor"}; printed without the frame. */
void frame_print_cursor(const struct sl_cursor *cursor, struct buffer *ret_json);
void frame_append_cursor(struct buffer *buffer, enum stream_format format,
                         const struct sl_cursor *cursor);

/* A keep-alive for many clients of one HTTP format, as an event that is framed; `says_cursor`: with
 * {"type":"cursor"} behind it. The caller owns one reference; NULL: out of memory. */
struct event *frame_keepalive_event(enum stream_format format, const struct sl_cursor *cursor,
                                    bool says_cursor);

/* SSE `retry:`; nothing elsewhere. */
void frame_append_retry(struct buffer *buffer, enum stream_format format, uint32_t retry_ms);

/* The header of an unmasked, final WebSocket frame; returns its size. */
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

/* A WebSocket close frame; `reason` is valid UTF-8 and cut to the 123 bytes there is room for.
 * WEBSOCKET_CLOSE_NO_STATUS: an empty one. */
void frame_append_close(struct buffer *buffer, uint16_t code, struct sl_slice reason);
/* The answer to a ping with this payload (at most 125 bytes). */
void frame_append_pong(struct buffer *buffer, struct sl_slice payload);

/* The inside of an HTTP chunk, for HTTP/1.0 clients, which know no chunks. */
struct sl_slice frame_unchunk(struct sl_slice chunk);
