/* stream_websocket.c - a stream on a WebSocket: the handshake, what the client says, the close.
 *
 * The reader tells what has come; here is what is done about it. Whatever a client says shows that
 * it lives. A ping is answered with a pong, the last of several that came together, and while the
 * socket is full only the newest is kept (RFC 6455, section 5.5.3): so the answers are bounded.
 * Text is for /v1/stream and dialects only; any other stream listens to nothing but another token,
 * and ends.
 *
 * A close is a close frame each way. Ours goes out behind the message that says why; the peer's is
 * answered with its own code. Once both have gone, our side of the connection ends, and the peer's
 * end, or a deadline, ends the rest. Behind a fault nothing of the peer is read, not even its
 * close, so it is not waited for.
 *
 * Who sends messages without end is slowed: MESSAGES_AT_ONCE of them are read at once and as many a
 * second from then on, of long ones fewer. What has been received besides is kept, and the socket
 * is not read meanwhile, so that the client must wait; what it is sent does not.
 *
 * Bounds: a message, before and after it is inflated, by MAX_MESSAGE_BYTES, or MAX_UNHEARD_BYTES
 * where none is listened to; what is kept unread by one read of the socket; answers by what a
 * stream may hold of our own messages (stream_say.c); all of that for all streams together by
 * stream_memory.c. */
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
    MAX_UNHEARD_BYTES = 12 << 10   /* elsewhere: for another token */
};

enum {
    MESSAGES_AT_ONCE = 100,
    MESSAGE_PART_BYTES = 4096, /* a message counts as one, and one more for each of these */
    READ_AGAIN_MESSAGES = 10   /* there is room for, so that a flood does not wake us for each */
};

static const struct leaky_rate message_rate = {MESSAGES_AT_ONCE, 1000};

/* --- the handshake --- */

/* Browsers, and npm's `ws`, end a WebSocket that has none of the subprotocols that they offered. */
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

/* --- what is said to it --- */

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
        close = dialect_talk_close(websocket_of(stream));
    say_close(websocket_of(stream), close.code, sl_slice_str(close.reason));
}

/* --- what it says --- */

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
        dialect_talk_message(websocket, message);
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

/* The peer closes, or answers our close. */
static void on_close(struct websocket *websocket, uint16_t code)
{
    struct stream *stream = &websocket->stream;

    websocket->was_closed = true;
    if (stream->stage == STREAM_CLOSING)
        wire_finish(&stream->wire);
    if (stream->stage != STREAM_LIVE || stream->end != STREAM_GOES_ON)
        return; /* our close frame is on its way */
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

static bool is_heeded(const struct websocket *websocket)
{
    return stream_goes_on(&websocket->stream);
}

static void act(struct websocket *websocket, enum websocket_item item,
                const struct websocket_event *event)
{
    if (item == WEBSOCKET_CLOSE)
        on_close(websocket, event->code);
    else if (!is_heeded(websocket))
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

/* --- how fast it is read --- */

/* Who is not listened to any more costs nothing. */
static bool may_read(const struct websocket *websocket)
{
    return !is_heeded(websocket) ||
           leaky_bucket_has_room(&websocket->messages, &message_rate, loop_ms(websocket));
}

/* As much of the input as may be read now. */
static void read_input(struct websocket *websocket, struct websocket_input *input)
{
    enum websocket_item item = WEBSOCKET_CLOSE;
    struct websocket_event event;

    websocket->pinged_ms = 0; /* whatever it says, it lives */
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

/* What a message says is told as a slice of `unread`, which stays where it is meanwhile. */
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

/* The peer answers our close frame first, unless it has said its own already. */
static void websocket_begin_close(struct stream *stream)
{
    if (websocket_of(stream)->was_closed)
        wire_finish(&stream->wire);
    websocket_read_on(stream); /* all that is left: its close frame may be in it */
}

/* Its close frame will not be read either, so it is not waited for. */
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
    mem_free(websocket->talk);
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
