/* gateway/http/websocket_reader.h - parses the input of a WebSocket client into messages (RFC 6455,
 * the server's side).
 *
 * No I/O: the owner passes the received bytes and handles the items that are returned.
 *
 *     struct websocket_input input = {bytes, size};
 *
 *     while ((item = websocket_read(&reader, &input, &event)) != WEBSOCKET_MORE)
 *         ... handle item and event
 *
 * After WEBSOCKET_CLOSE and WEBSOCKET_FAULT nothing is parsed: further input is discarded with
 * WEBSOCKET_MORE. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"

/* Close codes used here (RFC 6455, section 7.4.1). */
enum websocket_close_code {
    WEBSOCKET_CLOSE_NORMAL = 1000,
    WEBSOCKET_CLOSE_PROTOCOL_ERROR = 1002,
    WEBSOCKET_CLOSE_UNSUPPORTED_DATA = 1003,
    WEBSOCKET_CLOSE_NO_STATUS = 1005, /* never sent: the close frame was empty */
    WEBSOCKET_CLOSE_INVALID_PAYLOAD = 1007,
    WEBSOCKET_CLOSE_POLICY = 1008,
    WEBSOCKET_CLOSE_TOO_BIG = 1009,
    WEBSOCKET_CLOSE_INTERNAL_ERROR = 1011
};

enum websocket_item {
    WEBSOCKET_MORE,     /* all input is parsed; more is needed */
    WEBSOCKET_MESSAGE,  /* `payload`: a text message, valid UTF-8 */
    WEBSOCKET_DEFLATED, /* `payload`: a compressed text message, unchecked, for websocket_inflate();
                           only if permessage-deflate was agreed on */
    WEBSOCKET_PING,     /* `payload`: to be repeated in the pong. Of several in a row, only the last
                           needs an answer */
    WEBSOCKET_PONG,
    WEBSOCKET_CLOSE, /* `code` is valid or 1005, `payload` the reason, valid UTF-8. Answer with a
                        close frame of the same code, unless one was sent before */
    WEBSOCKET_FAULT  /* close with `code`; `payload` is the reason in a few words of ASCII */
};

struct websocket_event {
    struct sl_slice payload; /* valid until the next call, as long as the input is unchanged */
    uint16_t code;
};

/* The input is modified: payloads are unmasked in place. What was parsed is removed from its
 * beginning. */
struct websocket_input {
    unsigned char *data;
    size_t size;
};

enum { WEBSOCKET_HEAD_MAX_BYTES = 14, WEBSOCKET_CONTROL_MAX_BYTES = 125 };

/* One for each connection. Between messages it has no allocated memory. */
struct websocket_reader {
    struct buffer held; /* the beginning of a message, followed by that of a control frame */
    uint32_t max_message_bytes;
    uint32_t left; /* payload bytes of the current frame still to come */
    unsigned char head[WEBSOCKET_HEAD_MAX_BYTES]; /* the received part of the current head; its mask
                                                     is at its end */
    uint8_t head_size : 4;                        /* bytes in `head` */
    uint8_t utf8 : 4;                             /* enum utf8_state of the message's text */
    bool is_in_payload : 1;                       /* `head` is complete */
    bool is_in_message : 1;                       /* a fragment other than the last was received */
    bool is_given : 1;                            /* the content of `held` was returned */
    bool is_ended : 1;                            /* after a close or an error */
    bool takes_deflated : 1;                      /* permessage-deflate was agreed on */
    bool is_deflated : 1;                         /* of the current message */
};

/* A message, including all its fragments, may have up to `max_message_bytes` as sent.
 * `takes_deflated`: permessage-deflate was agreed on. */
void websocket_reader_init(struct websocket_reader *reader, uint32_t max_message_bytes,
                           bool takes_deflated);
void websocket_reader_done(struct websocket_reader *reader);
/* Discards the current message; nothing further is parsed. */
void websocket_reader_stop(struct websocket_reader *reader);
/* The memory held for an incomplete message. Call it when websocket_read() returns
 * WEBSOCKET_MORE. */
size_t websocket_reader_kept_bytes(const struct websocket_reader *reader);

/* Parses up to the next item. The result does not depend on how the input was split. Errors are
 * reported as early as possible: at the first byte that makes one, and a message that is too long
 * as soon as its head announces it. */
enum websocket_item websocket_read(struct websocket_reader *reader, struct websocket_input *input,
                                   struct websocket_event *ret_event);
