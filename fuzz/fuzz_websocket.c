/* fuzz_websocket.c - are messages of a WebSocket client read the same however they are cut, and
 * within the limits?
 *
 * The first byte says how the rest is cut, and whether the client may compress. It is read whole
 * and in pieces: the same items must be reported. Payloads are compared after unmasking; compressed
 * ones are inflated within the same limit. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/utf8.h"
#include "gateway/http/websocket_deflate.h"
#include "gateway/http/websocket_reader.h"

enum { MAX_MESSAGE_BYTES = 1000 };

static void check_deflated(struct sl_slice payload)
{
    static struct websocket_inflater *inflater; /* one for all, as in the server */
    struct sl_slice text;

    if (!inflater)
        inflater = websocket_inflater_new();
    must(inflater);
    must(payload.size <= MAX_MESSAGE_BYTES);
    if (websocket_inflate(inflater, payload, MAX_MESSAGE_BYTES, &text) < 0)
        return;
    must(text.size <= MAX_MESSAGE_BYTES);
    must(utf8_is_valid(text));
    websocket_inflater_release(inflater);
}

static void check_event(enum websocket_item item, const struct websocket_event *event)
{
    switch (item) {
    case WEBSOCKET_MESSAGE:
        must(event->payload.size <= MAX_MESSAGE_BYTES);
        must(utf8_is_valid(event->payload));
        break;
    case WEBSOCKET_DEFLATED:
        check_deflated(event->payload);
        break;
    case WEBSOCKET_PING:
    case WEBSOCKET_PONG:
        must(event->payload.size <= WEBSOCKET_CONTROL_MAX_BYTES);
        break;
    case WEBSOCKET_CLOSE:
        must(event->payload.size <= WEBSOCKET_CONTROL_MAX_BYTES - 2);
        must(utf8_is_valid(event->payload));
        must(event->code >= 1000 && event->code < 5000);
        break;
    case WEBSOCKET_FAULT:
        must(event->code == 1002 || event->code == 1003 || event->code == 1007 ||
             event->code == 1009);
        must(event->payload.size > 0);
        break;
    case WEBSOCKET_MORE:
        must(false);
    }
}

/* Appends what the reader reports as bytes that can be compared. */
static void read_piece(struct websocket_reader *reader, const uint8_t *data, size_t size,
                       bool *is_ended, struct buffer *told)
{
    unsigned char *copy = mem_copy(data, size);
    struct websocket_input input = {copy, size};
    struct websocket_event event;
    enum websocket_item item;

    while ((item = websocket_read(reader, &input, &event)) != WEBSOCKET_MORE) {
        must(!*is_ended);
        *is_ended = item == WEBSOCKET_CLOSE || item == WEBSOCKET_FAULT;
        check_event(item, &event);
        buffer_append(told, &item, sizeof(item));
        buffer_append(told, &event.code, sizeof(event.code));
        buffer_append(told, &event.payload.size, sizeof(event.payload.size));
        buffer_append_slice(told, event.payload);
    }
    must(input.size == 0);
    must(reader->held.size <= MAX_MESSAGE_BYTES + WEBSOCKET_CONTROL_MAX_BYTES);
    must(!*is_ended || !reader->held.data);
    mem_free(copy);
}

/* `seed` 0: whole. */
static void read_all(const uint8_t *data, size_t size, uint32_t seed, bool takes_deflated,
                     struct buffer *told)
{
    struct websocket_reader reader;
    bool is_ended = false;

    websocket_reader_init(&reader, MAX_MESSAGE_BYTES, takes_deflated);
    for (size_t at = 0, step; at < size; at += step) {
        step = size;
        if (seed) {
            seed = seed * 1664525 + 1013904223;
            step = 1 + (seed >> 16) % (seed >> 30 ? 8 : 300);
        }
        if (step > size - at)
            step = size - at;
        read_piece(&reader, data + at, step, &is_ended, told);
    }
    websocket_reader_done(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer whole = BUFFER_INIT, pieces = BUFFER_INIT;

    if (size == 0)
        return 0;
    read_all(data + 1, size - 1, 0, data[0] & 1, &whole);
    read_all(data + 1, size - 1, data[0] + 1u, data[0] & 1, &pieces);
    must(!whole.failed && !pieces.failed);
    must(sl_slice_equal(buffer_slice(&whole), buffer_slice(&pieces)));
    buffer_done(&whole);
    buffer_done(&pieces);
    return 0;
}
