/* stream_websocket.c - a stream on a WebSocket: the handshake, messages of the client, the close.
 *
 * The reader parses frames; this file acts on them. Whatever a client sends shows that it is alive.
 * A ping is answered with a pong: of several that arrive together only the last one, and while the
 * socket is full only the newest is kept (RFC 6455, section 5.5.3), so the answers are limited.
 * Text is only for /v1/stream and dialects. On any other stream the only message is a new token;
 * other text ends it.
 *
 * Closing takes a close frame in each direction. Ours follows the message with the reason; the
 * peer's is answered with its own code. After both, we shut down our side of the connection, and it
 * ends when the peer closes its side, or at a deadline. After a protocol error nothing is read any
 * more, not even the peer's close frame, so it is not waited for.
 *
 * A client that sends messages without end is slowed down: MESSAGES_AT_ONCE of them are read at
 * once, and as many per second from then on; fewer of long ones. Other received bytes are kept, and
 * the socket is not read meanwhile, so that the client must wait. Sending to it continues.
 *
 * Limits: a message has MAX_MESSAGE_BYTES, both compressed and decompressed, or MAX_UNHEARD_BYTES
 * where only a token is accepted; unread bytes are those of one read of the socket; answers are
 * limited by stream_say.c, and the memory for all streams together by stream_memory.c. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/delivery/frame.h"
#include "gateway/front/dialect.h"
#include "gateway/http/websocket_deflate.h"
#include "gateway/http/websocket_handshake.h"
#include "gateway/streams/stream.h"

enum {
    MAX_MESSAGE_BYTES = 256 << 10, /* on /v1/stream */
    MAX_UNHEARD_BYTES = 12 << 10   /* elsewhere, for a new token */
};

enum {
    MESSAGES_AT_ONCE = 100,
    MESSAGE_PART_BYTES = 4096, /* a message counts as one, plus one for each of these */
    READ_AGAIN_MESSAGES = 10   /* reading resumes with room for so many, to wake up less often */
};

static const struct leaky_rate message_rate = {MESSAGES_AT_ONCE, 1000};

/* --- the handshake --- */

/* Browsers, and npm's `ws`, close a WebSocket if the server selects none of the subprotocols that
 * they offered. */
static void append_protocol(const struct stream_request *request, struct sl_slice offered,
                            struct buffer *head)
{
    struct sl_slice chosen = request->echo_protocol ? SL_SLICE("sluice.v1") : SL_SLICE_NONE;

    if (request->dialect && request->dialect->echoes_protocol && offered.size > 0)
        chosen = http_next_element(&offered, ',');
    if (chosen.size > 0)
        buffer_append_format(head, "Sec-WebSocket-Protocol: %.*s\r\n", SL_SLICE_ARG(chosen));
}

static int websocket_open(struct stream *stream, const struct http_head *request,
                          struct sl_slice headers)
{
    bool is_heard = stream_request_takes_rules(&stream->own.request);
    char accept[WEBSOCKET_ACCEPT_SIZE + 1];
    struct buffer head = BUFFER_INIT;
    int r;

    websocket_reader_init(&websocket_of(stream)->reader,
                          is_heard ? MAX_MESSAGE_BYTES : MAX_UNHEARD_BYTES,
                          stream->own.request.deflate.is_agreed);
    r = websocket_handshake_accept(request->websocket_key, accept);
    if (r < 0)
        return r;
    buffer_append_format(&head,
                         "HTTP/1.1 101 Switching Protocols\r\n"
                         "Upgrade: websocket\r\n"
                         "Connection: Upgrade\r\n"
                         "Sec-WebSocket-Accept: %s\r\n"
                         "Sluice-Connection: %s\r\n",
                         accept, stream->connection_id);
    append_protocol(&stream->own.request, request->request.protocols, &head);
    websocket_deflate_append_header(&stream->own.request.deflate, &head);
    buffer_append_slice(&head, headers);
    buffer_append_str(&head, "\r\n");
    r = head.failed ? -ENOMEM : wire_write(&stream->wire, buffer_slice(&head));
    buffer_done(&head);
    return r;
}

/* --- sending --- */

static void send_pong(struct websocket *websocket)
{
    struct buffer frame = BUFFER_INIT;

    if (!websocket->has_ping || websocket->stream.stage != STREAM_LIVE ||
        websocket->stream.wire.is_blocked)
        return;
    websocket->has_ping = false;
    frame_append_pong(&frame, buffer_slice(&websocket->pong));
    stream_say_frame(&websocket->stream, &frame);
    buffer_done(&websocket->pong);
}

static void websocket_writable(struct stream *stream)
{
    send_pong(websocket_of(stream));
}

static void say_close(struct websocket *websocket, uint16_t code, struct sl_slice reason)
{
    struct buffer frame = BUFFER_INIT;

    frame_append_close(&frame, code, reason);
    stream_say_frame(&websocket->stream, &frame);
}

static void websocket_say_end(struct stream *stream, const struct disconnect_row *why)
{
    struct dialect_close close = {why->close_code, why->code};

    if (stream->own.request.dialect)
        close = dialect_websocket_close(websocket_of(stream));
    say_close(websocket_of(stream), close.code, sl_slice_str(close.reason));
}

/* --- messages of the client --- */

static uint64_t loop_ms(const struct websocket *websocket)
{
    return uv_now(websocket->stream.streams->settings.loop);
}

static void count_message(struct websocket *websocket, size_t size)
{
    uint64_t now = loop_ms(websocket);
    double level = leaky_bucket_level(&websocket->messages, &message_rate, now);

    leaky_bucket_set(&websocket->messages, level + 1 + (double)(size / MESSAGE_PART_BYTES), now);
}

static void on_message(struct websocket *websocket, struct sl_slice message)
{
    count_message(websocket, message.size);
    if (websocket->stream.own.request.dialect)
        dialect_websocket_message(websocket, message);
    else if (websocket->stream.own.rules)
        named_filters_message(websocket, message);
    else
        named_filters_token_message(websocket, message);
}

static void on_ping(struct websocket *websocket, struct sl_slice payload)
{
    buffer_clear(&websocket->pong);
    buffer_append_slice(&websocket->pong, payload);
    websocket->has_ping = !websocket->pong.failed;
}

/* The peer closes, or answers our close frame. */
static void on_close(struct websocket *websocket, uint16_t code)
{
    struct stream *stream = &websocket->stream;

    websocket->was_closed = true;
    if (stream->stage == STREAM_CLOSING)
        wire_finish(&stream->wire);
    if (stream->stage != STREAM_LIVE || stream->end != STREAM_GOES_ON)
        return; /* our close frame will be sent */
    stream_leave_delivery(stream);
    say_close(websocket, code, SL_SLICE(""));
    stream_leave(stream, STREAM_LEAVING_MS);
}

static void on_fault(struct websocket *websocket, uint16_t code)
{
    static const struct {
        uint16_t code;
        enum disconnect_reason reason;
    } rows[] = {
        {WEBSOCKET_CLOSE_TOO_BIG, DISCONNECT_TOO_BIG},
        {WEBSOCKET_CLOSE_INVALID_PAYLOAD, DISCONNECT_BAD_UTF8},
        {WEBSOCKET_CLOSE_UNSUPPORTED_DATA, DISCONNECT_BAD_DATA},
        {WEBSOCKET_CLOSE_INTERNAL_ERROR, DISCONNECT_INTERNAL},
    };
    enum disconnect_reason reason = DISCONNECT_BAD_MESSAGE;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].code == code)
            reason = rows[i].reason;
    }
    websocket->was_closed = true;
    stream_evict(&websocket->stream, reason);
}

static void on_deflated(struct websocket *websocket, struct sl_slice compressed)
{
    struct websocket_inflater *inflater = websocket->stream.streams->inflater;
    uint16_t code = WEBSOCKET_CLOSE_INTERNAL_ERROR;
    struct sl_slice text;
    int r = websocket_inflate(inflater, compressed, websocket->reader.max_message_bytes, &text);

    if (r == 0) {
        on_message(websocket, text);
        websocket_inflater_release(inflater);
        return;
    }
    if (r == -EMSGSIZE)
        code = WEBSOCKET_CLOSE_TOO_BIG;
    else if (r == -EILSEQ)
        code = WEBSOCKET_CLOSE_INVALID_PAYLOAD;
    else if (r == -EBADMSG)
        code = WEBSOCKET_CLOSE_PROTOCOL_ERROR;
    on_fault(websocket, code);
    websocket_reader_stop(&websocket->reader);
}

static bool is_processed(const struct websocket *websocket)
{
    return stream_goes_on(&websocket->stream);
}

static void act(struct websocket *websocket, enum websocket_item item,
                const struct websocket_event *event)
{
    if (item == WEBSOCKET_CLOSE)
        on_close(websocket, event->code);
    else if (!is_processed(websocket))
        return;
    else if (item == WEBSOCKET_MESSAGE)
        on_message(websocket, event->payload);
    else if (item == WEBSOCKET_DEFLATED)
        on_deflated(websocket, event->payload);
    else if (item == WEBSOCKET_PING)
        on_ping(websocket, event->payload);
    else if (item == WEBSOCKET_FAULT)
        on_fault(websocket, event->code);
}

/* --- the rate of reading --- */

/* Input that is only skipped costs nothing, so it is not limited. */
static bool may_read(const struct websocket *websocket)
{
    return !is_processed(websocket) ||
           leaky_bucket_has_room(&websocket->messages, &message_rate, loop_ms(websocket));
}

/* Reads as much of the input as the rate permits. */
static void read_input(struct websocket *websocket, struct websocket_input *input)
{
    enum websocket_item item = WEBSOCKET_CLOSE;
    struct websocket_event event;

    websocket->pinged_ms = 0; /* any input shows that it is alive */
    while (item != WEBSOCKET_MORE && (input->size == 0 || may_read(websocket))) {
        item = websocket_read(&websocket->reader, input, &event);
        if (item != WEBSOCKET_MORE)
            act(websocket, item, &event);
    }
    send_pong(websocket);
}

static void pause_reading(struct websocket *websocket)
{
    if (!websocket->is_paused)
        metric_add(websocket->stream.streams->settings.metrics, METRIC_MESSAGE_PAUSES, 1);
    websocket->is_paused = true;
    wire_stop_reading(&websocket->stream.wire);
    if (stream_goes_on(&websocket->stream))
        stream_arm(&websocket->stream);
}

static void end_pause(struct websocket *websocket)
{
    buffer_done(&websocket->unread);
    websocket->is_paused = false;
    wire_resume_reading(&websocket->stream.wire);
}

static void websocket_received(struct stream *stream, char *bytes, size_t size)
{
    struct websocket *websocket = websocket_of(stream);
    struct websocket_input input = {(unsigned char *)bytes, size};

    if (!websocket->is_paused)
        read_input(websocket, &input);
    if (input.size == 0)
        return;
    buffer_append(&websocket->unread, input.data, input.size);
    if (websocket->unread.failed)
        stream_evict(stream, DISCONNECT_INTERNAL);
    pause_reading(websocket);
}

static uint64_t websocket_pause_left_ms(const struct stream *stream)
{
    const struct websocket *websocket = websocket_of(stream);

    if (!websocket->is_paused)
        return UINT64_MAX;
    return leaky_bucket_wait_ms(&websocket->messages, &message_rate,
                                MESSAGES_AT_ONCE - READ_AGAIN_MESSAGES, loop_ms(websocket));
}

/* Messages are slices of `unread`, which does not move meanwhile. */
static void websocket_read_on(struct stream *stream)
{
    struct websocket *websocket = websocket_of(stream);
    struct websocket_input input = {(unsigned char *)websocket->unread.data,
                                    websocket->unread.size};

    if (!websocket->is_paused)
        return;
    read_input(websocket, &input);
    if (input.size == 0)
        end_pause(websocket);
    else
        buffer_consume(&websocket->unread, websocket->unread.size - input.size);
    stream_memory_count(stream);
}

static size_t websocket_kept_bytes(const struct stream *stream)
{
    const struct websocket *websocket = websocket_of(stream);

    return websocket_reader_kept_bytes(&websocket->reader) + websocket->unread.capacity;
}

/* The connection ends after the peer's close frame, unless that has arrived already. */
static void websocket_begin_close(struct stream *stream)
{
    if (websocket_of(stream)->was_closed)
        wire_finish(&stream->wire);
    websocket_read_on(stream); /* reads the rest, which may contain the peer's close frame */
}

/* Its close frame will not be read, so it is not waited for. */
static void websocket_stop_reading(struct stream *stream)
{
    struct websocket *websocket = websocket_of(stream);

    websocket_reader_stop(&websocket->reader);
    websocket->was_closed = true;
    end_pause(websocket);
}

static void websocket_done(struct stream *stream)
{
    struct websocket *websocket = websocket_of(stream);

    websocket_reader_done(&websocket->reader);
    buffer_done(&websocket->unread);
    buffer_done(&websocket->pong);
    mem_free(websocket->dialect_state);
}

const struct stream_protocol websocket_protocol = {
    .size = sizeof(struct websocket),
    .open = websocket_open,
    .received = websocket_received,
    .writable = websocket_writable,
    .say_end = websocket_say_end,
    .begin_close = websocket_begin_close,
    .pause_left_ms = websocket_pause_left_ms,
    .read_on = websocket_read_on,
    .kept_bytes = websocket_kept_bytes,
    .stop_reading = websocket_stop_reading,
    .done = websocket_done,
};
