/* websocket_reader.c - parses frames one after the other; messages are assembled only if they are
 * split.
 *
 * The head of a frame is collected and checked byte by byte (judge_head), so that the result does
 * not depend on how the input was split. Then the payload is unmasked in place. If a frame is
 * complete in the input, and so is a message of a single frame, a slice of the input is returned;
 * otherwise the payload is appended to `held`. A control frame may occur between the fragments of a
 * message: if it is split as well, its payload is stored after the message's and removed again.
 *
 * Limits: `held` grows with what was received, not with what was announced, and holds at most
 * max_message_bytes and one control frame. Its memory is freed by the call after the one that
 * returned the message. Every byte is processed a fixed number of times. */
#include "gateway/http/websocket_reader.h"

#include <assert.h>
#include <string.h>

#include "base/utf8.h"

enum {
    FIN = 0x80,
    RSV = 0x70,
    RSV1 = 0x40,
    OPCODE = 0x0f,
    CONTROL = 0x08,
    MASKED = 0x80,
    LENGTH = 0x7f
};
enum { MASK_SIZE = 4, LENGTH_16 = 126, LENGTH_64 = 127 };
enum opcode {
    OPCODE_CONTINUATION = 0,
    OPCODE_TEXT = 1,
    OPCODE_BINARY = 2,
    OPCODE_CLOSE = 8,
    OPCODE_PING = 9,
    OPCODE_PONG = 10
};

static_assert(sizeof(struct websocket_reader) <= 64, "each idle connection has one");

void websocket_reader_init(struct websocket_reader *reader, uint32_t max_message_bytes,
                           bool takes_deflated)
{
    *reader = (struct websocket_reader){.held = BUFFER_INIT,
                                        .max_message_bytes = max_message_bytes,
                                        .utf8 = UTF8_WHOLE,
                                        .takes_deflated = takes_deflated};
}

void websocket_reader_done(struct websocket_reader *reader)
{
    buffer_done(&reader->held);
}

void websocket_reader_stop(struct websocket_reader *reader)
{
    buffer_done(&reader->held);
    reader->is_given = false;
    reader->is_ended = true;
}

size_t websocket_reader_kept_bytes(const struct websocket_reader *reader)
{
    return reader->held.capacity;
}

static enum websocket_item fault(struct websocket_event *ret_event, uint16_t code,
                                 const char *reason)
{
    ret_event->code = code;
    ret_event->payload = sl_slice_str(reason);
    return WEBSOCKET_FAULT;
}

static enum websocket_item protocol_error(struct websocket_event *ret_event, const char *reason)
{
    return fault(ret_event, WEBSOCKET_CLOSE_PROTOCOL_ERROR, reason);
}

static bool is_control(const struct websocket_reader *reader)
{
    return reader->head[0] & CONTROL;
}

static bool is_final(const struct websocket_reader *reader)
{
    return reader->head[0] & FIN;
}

/* RSV1 in the first frame of a message says that it is compressed (RFC 7692, section 6). */
static bool rsv_is_permitted(const struct websocket_reader *reader)
{
    unsigned rsv = reader->head[0] & RSV, opcode = reader->head[0] & OPCODE;

    return rsv == 0 || (rsv == RSV1 && reader->takes_deflated &&
                        (opcode == OPCODE_TEXT || opcode == OPCODE_BINARY));
}

/* Checks the first byte: FIN, RSV1 to RSV3 and the opcode. */
static enum websocket_item judge_kind(struct websocket_reader *reader,
                                      struct websocket_event *ret_event)
{
    if (!rsv_is_permitted(reader))
        return protocol_error(ret_event, "reserved bit set");
    switch (reader->head[0] & OPCODE) {
    case OPCODE_CONTINUATION:
        if (!reader->is_in_message)
            return protocol_error(ret_event, "continuation without a beginning");
        return WEBSOCKET_MORE;
    case OPCODE_TEXT:
    case OPCODE_BINARY:
        if (reader->is_in_message)
            return protocol_error(ret_event, "new message within a message");
        if ((reader->head[0] & OPCODE) == OPCODE_BINARY)
            return fault(ret_event, WEBSOCKET_CLOSE_UNSUPPORTED_DATA, "binary message");
        reader->is_deflated = (reader->head[0] & RSV1) != 0;
        return WEBSOCKET_MORE;
    case OPCODE_CLOSE:
    case OPCODE_PING:
    case OPCODE_PONG:
        if (!is_final(reader))
            return protocol_error(ret_event, "control frame in fragments");
        return WEBSOCKET_MORE;
    default:
        return protocol_error(ret_event, "reserved opcode");
    }
}

/* Checks the second byte: the mask bit and the first byte of the length. */
static enum websocket_item judge_form(const struct websocket_reader *reader,
                                      struct websocket_event *ret_event)
{
    if (!(reader->head[1] & MASKED))
        return protocol_error(ret_event, "frame without a mask");
    if (is_control(reader) && (reader->head[1] & LENGTH) > WEBSOCKET_CONTROL_MAX_BYTES)
        return protocol_error(ret_event, "control frame too long");
    return WEBSOCKET_MORE;
}

/* The size of the head before its mask; its first two bytes must be there. */
static size_t head_before_mask(const struct websocket_reader *reader)
{
    switch (reader->head[1] & LENGTH) {
    case LENGTH_16:
        return 4;
    case LENGTH_64:
        return 10;
    default:
        return 2;
    }
}

static uint64_t announced_bytes(const struct websocket_reader *reader)
{
    size_t end = head_before_mask(reader);
    uint64_t length = 0;

    if (end == 2)
        return reader->head[1] & LENGTH;
    for (size_t i = 2; i < end; i++)
        length = length << 8 | reader->head[i];
    return length;
}

static enum websocket_item judge_length(struct websocket_reader *reader,
                                        struct websocket_event *ret_event)
{
    uint64_t length = announced_bytes(reader);
    unsigned form = reader->head[1] & LENGTH;

    if ((form == LENGTH_16 && length < LENGTH_16) || (form == LENGTH_64 && length <= UINT16_MAX))
        return protocol_error(ret_event, "length not in its shortest form");
    if (length > INT64_MAX)
        return protocol_error(ret_event, "length has its top bit set");
    if (!is_control(reader) && length > reader->max_message_bytes - reader->held.size)
        return fault(ret_event, WEBSOCKET_CLOSE_TOO_BIG, "message too long");
    reader->left = (uint32_t)length;
    return WEBSOCKET_MORE;
}

/* Called after each byte of the head. WEBSOCKET_MORE: valid so far; is_in_payload is set after the
 * last byte. */
static enum websocket_item judge_head(struct websocket_reader *reader,
                                      struct websocket_event *ret_event)
{
    enum websocket_item item = WEBSOCKET_MORE;

    if (reader->head_size == 1)
        return judge_kind(reader, ret_event);
    if (reader->head_size == 2)
        item = judge_form(reader, ret_event);
    if (item == WEBSOCKET_MORE && reader->head_size == head_before_mask(reader))
        item = judge_length(reader, ret_event);
    reader->is_in_payload = reader->head_size == head_before_mask(reader) + MASK_SIZE;
    return item;
}

static enum websocket_item read_head(struct websocket_reader *reader, struct websocket_input *input,
                                     struct websocket_event *ret_event)
{
    enum websocket_item item = WEBSOCKET_MORE;

    while (item == WEBSOCKET_MORE && !reader->is_in_payload && input->size > 0) {
        assert(reader->head_size < WEBSOCKET_HEAD_MAX_BYTES);
        reader->head[reader->head_size++] = *input->data++;
        input->size--;
        item = judge_head(reader, ret_event);
    }
    return item;
}

/* Rotates `mask` for the byte that follows. */
static void unmask(unsigned char *bytes, size_t size, unsigned char mask[static MASK_SIZE])
{
    unsigned char turned[MASK_SIZE];
    uint64_t mask_word, word;
    size_t i = 0;

    memcpy(&mask_word, mask, MASK_SIZE);
    memcpy((char *)&mask_word + MASK_SIZE, mask, MASK_SIZE);
    for (; size - i >= sizeof(word); i += sizeof(word)) {
        memcpy(&word, bytes + i, sizeof(word));
        word ^= mask_word;
        memcpy(bytes + i, &word, sizeof(word));
    }
    for (; i < size; i++)
        bytes[i] ^= mask[i % MASK_SIZE];
    for (i = 0; i < MASK_SIZE; i++)
        turned[i] = mask[(size + i) % MASK_SIZE];
    memcpy(mask, turned, MASK_SIZE);
}

/* Codes that are valid in a close frame (RFC 6455, sections 7.4.1 and 7.4.2, and IANA's registry
 * for 1012 to 1014). */
static bool close_code_is_valid(unsigned code)
{
    if (code >= 3000)
        return code <= 4999;
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014);
}

static enum websocket_item judge_close(struct sl_slice payload, struct websocket_event *ret_event)
{
    const unsigned char *bytes = (const unsigned char *)payload.data;
    unsigned code;

    if (payload.size == 0) {
        ret_event->code = WEBSOCKET_CLOSE_NO_STATUS;
        return WEBSOCKET_CLOSE;
    }
    if (payload.size == 1)
        return protocol_error(ret_event, "close code of one byte");
    code = (unsigned)bytes[0] << 8 | bytes[1];
    if (!close_code_is_valid(code))
        return protocol_error(ret_event, "invalid close code");
    ret_event->code = (uint16_t)code;
    ret_event->payload = sl_slice_from(payload, 2);
    if (!utf8_is_valid(ret_event->payload))
        return fault(ret_event, WEBSOCKET_CLOSE_INVALID_PAYLOAD, "close reason is not UTF-8");
    return WEBSOCKET_CLOSE;
}

static enum websocket_item tell_control(const struct websocket_reader *reader,
                                        struct sl_slice payload, struct websocket_event *ret_event)
{
    ret_event->payload = payload;
    switch (reader->head[0] & OPCODE) {
    case OPCODE_PING:
        return WEBSOCKET_PING;
    case OPCODE_PONG:
        return WEBSOCKET_PONG;
    default:
        return judge_close(payload, ret_event);
    }
}

/* Text is validated piece by piece, so that it is refused at the first invalid byte. */
static enum websocket_item judge_text(struct websocket_reader *reader, struct sl_slice piece,
                                      struct websocket_event *ret_event)
{
    enum utf8_state state = utf8_read((enum utf8_state)reader->utf8, piece);
    bool is_end = is_final(reader) && reader->left == 0;

    reader->utf8 = state;
    if (state == UTF8_INVALID || (is_end && state != UTF8_WHOLE))
        return fault(ret_event, WEBSOCKET_CLOSE_INVALID_PAYLOAD, "text is not UTF-8");
    return WEBSOCKET_MORE;
}

/* Takes as much of the frame's payload as is available, unmasked. */
static struct sl_slice take_payload(struct websocket_reader *reader, struct websocket_input *input)
{
    size_t size = input->size < reader->left ? input->size : reader->left;
    struct sl_slice piece = sl_slice((char *)input->data, size);

    unmask(input->data, size, reader->head + reader->head_size - MASK_SIZE);
    input->data += size;
    input->size -= size;
    reader->left -= (uint32_t)size;
    return piece;
}

/* Prepares for the head of the next frame. */
static void end_frame(struct websocket_reader *reader)
{
    assert(reader->left == 0);
    reader->head_size = 0;
    reader->is_in_payload = false;
}

static bool hold(struct websocket_reader *reader, struct sl_slice piece)
{
    if (piece.size > 0) /* even an empty append would allocate */
        buffer_append_slice(&reader->held, piece);
    return !reader->held.failed;
}

static enum websocket_item read_control(struct websocket_reader *reader, struct sl_slice piece,
                                        struct websocket_event *ret_event)
{
    size_t size = announced_bytes(reader);

    if (piece.size == size)
        return tell_control(reader, piece, ret_event);
    if (!hold(reader, piece))
        return fault(ret_event, WEBSOCKET_CLOSE_INTERNAL_ERROR, "out of memory");
    if (reader->left > 0)
        return WEBSOCKET_MORE;
    reader->is_given = true;
    piece = sl_slice(reader->held.data + reader->held.size - size, size);
    return tell_control(reader, piece, ret_event);
}

static enum websocket_item read_data(struct websocket_reader *reader, struct sl_slice piece,
                                     struct websocket_event *ret_event)
{
    enum websocket_item item =
        reader->is_deflated ? WEBSOCKET_MORE : judge_text(reader, piece, ret_event);
    bool is_end = is_final(reader) && reader->left == 0;

    if (item != WEBSOCKET_MORE)
        return item;
    if (!is_end || reader->held.size > 0) {
        if (!hold(reader, piece))
            return fault(ret_event, WEBSOCKET_CLOSE_INTERNAL_ERROR, "out of memory");
        piece = buffer_slice(&reader->held);
    }
    reader->is_in_message = !is_end;
    reader->is_given = is_end && reader->held.size > 0;
    if (!is_end)
        return WEBSOCKET_MORE;
    ret_event->payload = piece;
    return reader->is_deflated ? WEBSOCKET_DEFLATED : WEBSOCKET_MESSAGE;
}

static enum websocket_item read_payload(struct websocket_reader *reader,
                                        struct websocket_input *input,
                                        struct websocket_event *ret_event)
{
    struct sl_slice piece = take_payload(reader, input);
    enum websocket_item item = is_control(reader) ? read_control(reader, piece, ret_event)
                                                  : read_data(reader, piece, ret_event);

    if (reader->left == 0 && !reader->is_given)
        end_frame(reader);
    return item;
}

/* Releases what was returned by the last call. */
static void forget_given(struct websocket_reader *reader)
{
    if (reader->is_ended)
        buffer_done(&reader->held);
    if (!reader->is_given || reader->is_ended)
        return;
    reader->held.size -= is_control(reader) ? announced_bytes(reader) : reader->held.size;
    if (reader->held.size == 0)
        buffer_done(&reader->held);
    reader->is_given = false;
    end_frame(reader);
}

/* Nothing after a close or an error is parsed. */
static void end(struct websocket_reader *reader, struct websocket_input *input)
{
    reader->is_ended = true;
    input->data += input->size;
    input->size = 0;
}

enum websocket_item websocket_read(struct websocket_reader *reader, struct websocket_input *input,
                                   struct websocket_event *ret_event)
{
    enum websocket_item item = WEBSOCKET_MORE;

    *ret_event = (struct websocket_event){SL_SLICE(""), 0};
    forget_given(reader);
    while (item == WEBSOCKET_MORE && input->size > 0 && !reader->is_ended) {
        item = read_head(reader, input, ret_event);
        if (item == WEBSOCKET_MORE && reader->is_in_payload)
            item = read_payload(reader, input, ret_event);
    }
    if (item == WEBSOCKET_CLOSE || item == WEBSOCKET_FAULT || reader->is_ended)
        end(reader, input);
    return item;
}
