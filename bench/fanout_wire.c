/* fanout_wire.c - parses chunks, WebSocket frames, lines and events, in place and without copies.
 *
 * Only what servers send is understood, and nothing is checked that a measurement does not need: a
 * malformed stream ends it. Pings are answered at once, otherwise a server would disconnect. */
#include "bench/fanout_wire.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "bench/measure.h"

const char *const format_names[FORMAT_COUNT] = {"ws", "ndjson", "delimited", "sse"};

enum { CHUNK_SIZE, CHUNK_SIZE_REST, CHUNK_PAYLOAD, CHUNK_END };

static void chunk_begins(struct wire *wire, bool *ret_ended)
{
    wire->chunk_state = CHUNK_PAYLOAD;
    if (wire->chunk_left == 0)
        *ret_ended = true;
}

size_t wire_dechunk(struct wire *wire, char *bytes, size_t size, bool *ret_ended)
{
    size_t kept = 0;

    for (size_t at = 0; at < size;) {
        if (wire->chunk_state == CHUNK_PAYLOAD) {
            size_t part = size - at < wire->chunk_left ? size - at : wire->chunk_left;

            memmove(bytes + kept, bytes + at, part);
            kept += part;
            at += part;
            wire->chunk_left -= part;
            if (wire->chunk_left == 0)
                wire->chunk_state = CHUNK_END;
            continue;
        }
        char byte = bytes[at++];

        if (byte == '\n' && wire->chunk_state == CHUNK_END)
            wire->chunk_state = CHUNK_SIZE;
        else if (byte == '\n')
            chunk_begins(wire, ret_ended);
        else if (byte == ';' && wire->chunk_state == CHUNK_SIZE)
            wire->chunk_state = CHUNK_SIZE_REST;
        else if (wire->chunk_state == CHUNK_SIZE && isxdigit((unsigned char)byte))
            wire->chunk_left =
                wire->chunk_left * 16 +
                (uint64_t)(isdigit((unsigned char)byte) ? byte - '0' : (byte | 32) - 'a' + 10);
    }
    return kept;
}

/* --- decompression --- */

static struct {
    char *bytes;
    size_t size, capacity;
} inflated; /* of the wire that is being read */

enum { INFLATE_STEP = 64 << 10, GZIP_WINDOW_BITS = 16 + 15, RAW_WINDOW_BITS = -15 };

void wire_begin_inflating(struct wire *wire)
{
    wire->inflater = calloc(1, sizeof(*wire->inflater));
    if (!wire->inflater ||
        inflateInit2(wire->inflater,
                     wire->format == FORMAT_WEBSOCKET ? RAW_WINDOW_BITS : GZIP_WINDOW_BITS) != Z_OK)
        measure_fail("memory", NULL);
}

void wire_done(struct wire *wire)
{
    if (!wire->inflater)
        return;
    inflateEnd(wire->inflater);
    free(wire->inflater);
    wire->inflater = NULL;
}

static char *room_for(size_t size)
{
    if (inflated.size + size > inflated.capacity) {
        inflated.capacity = (inflated.size + size) * 2;
        inflated.bytes = realloc(inflated.bytes, inflated.capacity);
        if (!inflated.bytes)
            measure_fail("memory", NULL);
    }
    return inflated.bytes + inflated.size;
}

static bool inflate_more(struct wire *wire, const char *bytes, size_t size)
{
    z_stream *stream = wire->inflater;
    int r;

    stream->next_in = (Bytef *)bytes;
    stream->avail_in = (uInt)size;
    do {
        stream->next_out = (Bytef *)room_for(INFLATE_STEP);
        stream->avail_out = INFLATE_STEP;
        r = inflate(stream, Z_SYNC_FLUSH);
        inflated.size += INFLATE_STEP - stream->avail_out;
    } while (r == Z_OK && stream->avail_out == 0);
    return (r == Z_OK || r == Z_BUF_ERROR || r == Z_STREAM_END) && stream->avail_in == 0;
}

char *wire_inflate(struct wire *wire, const char *bytes, size_t kept, size_t size, size_t *ret_size)
{
    inflated.size = 0;
    memcpy(room_for(kept + 1), bytes, kept);
    inflated.size = kept;
    if (!inflate_more(wire, bytes + kept, size))
        return NULL;
    *ret_size = inflated.size;
    return inflated.bytes;
}

/* The tail is what the sender has removed. */
static bool take_deflated(struct wire *wire, const char *payload, size_t size,
                          const struct wire_reader *reader)
{
    inflated.size = 0;
    if (!wire->inflater || !inflate_more(wire, payload, size) ||
        !inflate_more(wire, "\0\0\xff\xff", 4))
        return false;
    reader->message(reader->owner, inflated.bytes, inflated.size);
    return true;
}

/* --- messages --- */

static uint64_t big_endian(const unsigned char *bytes, size_t size)
{
    uint64_t value = 0;

    for (size_t i = 0; i < size; i++)
        value = value << 8 | bytes[i];
    return value;
}

/* A pong has a mask of zeros: allowed, and the payload stays as it is. */
static void pong(const struct wire_reader *reader, const char *payload, size_t size)
{
    unsigned char frame[6 + 125] = {0x8a, (unsigned char)(0x80 | size)};

    memcpy(frame + 6, payload, size);
    reader->answer(reader->owner, frame, 6 + size);
}

static void answer_nats(const struct wire_reader *reader)
{
    static const char frame[6 + 6] = "\x82\x86\0\0\0\0PONG\r\n";

    reader->answer(reader->owner, frame, sizeof(frame));
}

/* The protocol of NATS: lines; those that are JSON were published. */
static void take_nats(const char *bytes, size_t size, const struct wire_reader *reader)
{
    const char *end;

    for (size_t at = 0; at < size && (end = memchr(bytes + at, '\n', size - at));
         at = (size_t)(end + 1 - bytes)) {
        if (bytes[at] == '{')
            reader->message(reader->owner, bytes + at, (size_t)(end - (bytes + at)));
        else if (strncmp(bytes + at, "PING", 4) == 0)
            answer_nats(reader);
    }
}

static ptrdiff_t take_frames(struct wire *wire, char *bytes, size_t size,
                             const struct wire_reader *reader)
{
    size_t at = 0;

    while (size - at >= 2) {
        const unsigned char *frame = (unsigned char *)bytes + at;
        uint64_t payload = frame[1];
        size_t head = payload == 126 ? 4 : payload == 127 ? 10 : 2;

        if (payload > 127)
            return -1; /* masked */
        if (size - at < head)
            break;
        if (head > 2)
            payload = big_endian(frame + 2, head - 2);
        if (size - at < head + payload)
            break;
        switch (frame[0]) {
        case 0x81:
            reader->message(reader->owner, bytes + at + head, payload);
            break;
        case 0x82:
            take_nats(bytes + at + head, payload, reader);
            break;
        case 0xc1:
            if (!take_deflated(wire, bytes + at + head, payload, reader))
                return -1;
            break;
        case 0x89:
            pong(reader, bytes + at + head, payload);
            break;
        default:
            return -1; /* a close, or an opcode that no server sends here */
        }
        at += head + payload;
    }
    return (ptrdiff_t)at;
}

static bool is_number(const char *line, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (!isdigit((unsigned char)line[i]))
            return false;
    }
    return size > 0;
}

/* `line` is without its terminator, `whole` with it. false: malformed. */
static bool take_line(struct wire *wire, const char *line, size_t size, size_t whole,
                      const struct wire_reader *reader)
{
    if (wire->format == FORMAT_SSE) {
        if (size >= 6 && memcmp(line, "data: ", 6) == 0)
            reader->message(reader->owner, line + 6, size - 6);
        return true;
    }
    if (size == 0)
        return true; /* a keep-alive */
    if (wire->format == FORMAT_DELIMITED && wire->line_size == 0) {
        if (!is_number(line, size))
            return false;
        wire->line_size = strtoull(line, NULL, 10);
        return true;
    }
    if (wire->format == FORMAT_DELIMITED && wire->line_size != whole)
        return false;
    wire->line_size = 0;
    reader->message(reader->owner, line, size);
    return true;
}

static ptrdiff_t take_lines(struct wire *wire, char *bytes, size_t size,
                            const struct wire_reader *reader)
{
    size_t at = 0;
    char *end;

    while (at < size && (end = memchr(bytes + at, '\n', size - at))) {
        size_t whole = (size_t)(end + 1 - (bytes + at));
        size_t line = whole - 1;

        if (line > 0 && bytes[at + line - 1] == '\r')
            line--;
        if (!take_line(wire, bytes + at, line, whole, reader))
            return -1;
        at += whole;
    }
    return (ptrdiff_t)at;
}

ptrdiff_t wire_take(struct wire *wire, char *bytes, size_t size, const struct wire_reader *reader)
{
    return wire->format == FORMAT_WEBSOCKET ? take_frames(wire, bytes, size, reader)
                                            : take_lines(wire, bytes, size, reader);
}
