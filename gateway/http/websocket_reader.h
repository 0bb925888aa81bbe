/* gateway/http/websocket_reader.h - what a WebSocket client sends: bytes in, messages and verdicts
 * out (RFC 6455, the server's side).
 *
 * No I/O: the owner hands over what arrived and acts upon what it is told.
 *
 *     struct websocket_input input = {bytes, size};
 *
 *     while ((item = websocket_read(&reader, &input, &event)) != WEBSOCKET_MORE)
 *         ... act upon item and event
 *
 * Behind WEBSOCKET_CLOSE and WEBSOCKET_FAULT nothing further is read: whatever comes is swallowed
 * and answered with WEBSOCKET_MORE. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"

/* Close codes that are spoken of here (RFC 6455, section 7.4.1). */
enum websocket_close_code {
    WEBSOCKET_CLOSE_NORMAL = 1000,
    WEBSOCKET_CLOSE_PROTOCOL_ERROR = 1002,
    WEBSOCKET_CLOSE_UNSUPPORTED_DATA = 1003,
    WEBSOCKET_CLOSE_NO_STATUS = 1005, /* never on the wire: the close frame was empty */
    WEBSOCKET_CLOSE_INVALID_PAYLOAD = 1007,
    WEBSOCKET_CLOSE_POLICY = 1008,
    WEBSOCKET_CLOSE_TOO_BIG = 1009,
    WEBSOCKET_CLOSE_INTERNAL_ERROR = 1011
};

enum websocket_item {
    WEBSOCKET_MORE,     /* all of the input is read; come back with more */
    WEBSOCKET_MESSAGE,  /* `payload`: a text message, valid UTF-8 */
    WEBSOCKET_DEFLATED, /* `payload`: a compressed text message, not looked into; for
                           websocket_inflate(). Only for who has agreed on it */
    WEBSOCKET_PING,     /* `payload`: what the pong repeats. Of several in a row, answer the last */
    WEBSOCKET_PONG,
    WEBSOCKET_CLOSE, /* `code` is a valid one or 1005, `payload` the reason, valid UTF-8. Answer
                        with a close frame of the same code, unless one was sent before */
    WEBSOCKET_FAULT  /* close with `code`; `payload` says why in a few words of ASCII */
};

struct websocket_event {
    struct sl_slice payload; /* valid until the next call, as long as the input is not touched */
    uint16_t code;
};

/* Written to: payloads are unmasked in their place. What was read goes off its beginning. */
struct websocket_input {
    unsigned char *data;
    size_t size;
};

enum { WEBSOCKET_HEAD_MAX_BYTES = 14, WEBSOCKET_CONTROL_MAX_BYTES = 125 };

/* One per connection. Between messages it holds no memory but its own. */
struct websocket_reader {
    struct buffer held; /* the beginning of a message and, behind it, that of a control frame */
    uint32_t max_message_bytes;
    uint32_t left; /* payload bytes of the current frame that have not come yet */
    unsigned char head[WEBSOCKET_HEAD_MAX_BYTES]; /* of the current frame, as far as it has come;
                                                     the mask is at its end */
    uint8_t head_size : 4;                        /* bytes in `head` */
    uint8_t utf8 : 4;                             /* enum utf8_state of the message's text */
    bool is_in_payload : 1;                       /* `head` is whole */
    bool is_in_message : 1;                       /* a fragment that was not the last has come */
    bool is_given : 1;                            /* the owner has seen what is in `held` */
    bool is_ended : 1;                            /* after a close or a fault */
    bool takes_deflated : 1;                      /* permessage-deflate was agreed on */
    bool is_deflated : 1;                         /* the message that has begun */
};

/* A message, all its fragments together, may have up to `max_message_bytes`, as it is sent.
 * `takes_deflated`: permessage-deflate has been agreed on. */
void websocket_reader_init(struct websocket_reader *reader, uint32_t max_message_bytes,
                           bool takes_deflated);
void websocket_reader_done(struct websocket_reader *reader);
/* Forgets what has begun; nothing further is read. */
void websocket_reader_stop(struct websocket_reader *reader);
/* Memory of a message that has not ended. Ask when websocket_read() wants more. */
size_t websocket_reader_kept_bytes(const struct websocket_reader *reader);

/* Reads on until there is something to tell. How the bytes were cut into inputs makes no difference
 * to what is told. Never looks further than it must: a fault is told at the first byte that
 * makes it one, a message that is too long as soon as a head announces it. */
enum websocket_item websocket_read(struct websocket_reader *reader, struct websocket_input *input,
                                   struct websocket_event *ret_event);
