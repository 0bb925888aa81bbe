/* compressor.c - one deflate stream for independent blocks, and one for each history.
 *
 * zstd compresses a frame in one call, because it chooses smaller tables if it knows the size; data
 * that are sent together are gathered first.
 *
 * The deflate stream for independent blocks has a small window and small tables, because it is
 * reset for each event, and clearing large tables would cost more than compressing. All decoders
 * accept its blocks, because no reference is longer than the smallest window that is negotiated.
 * zlib uses a stored block if compressing would not make it smaller.
 *
 * The holders of histories are searched for the one with the fewest clients only when a lane asks
 * that was not refused recently, so at most once in ASK_AGAIN_MS for a lane. */
#include "gateway/delivery/compressor.h"

#include <assert.h>
#include <errno.h>

#include <zlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/delivery/frame.h"
#include "gateway/delivery/zstd_writer.h"
#include "gateway/http/websocket_deflate.h"

enum {
    ALONE_MEMORY_LEVEL = 5,
    HISTORY_MEMORY_LEVEL = 8,
    DEFLATER_BYTES = 8 << 10, /* apart from windows and tables */
    IDLE_MS = 60000,          /* an unused history can be taken away after this time */
    ASK_AGAIN_MS = 10000
};

struct deflater {
    z_stream stream;
    size_t bytes; /* of memory, approximately */
};

struct compressor {
    struct compressor_settings settings;
    struct compressor_counts counts;
    struct deflater *alone;
    struct zstd_writer *zstd;
    struct buffer gathered; /* for zstd */
    struct buffer scratch;
    struct list holders;
};

/* --- deflate streams --- */

static void *zlib_alloc(void *owner, unsigned count, unsigned size)
{
    (void)owner;
    return mem_alloc(mem_array_size(count, size));
}

static void zlib_free(void *owner, void *memory)
{
    (void)owner;
    mem_free(memory);
}

/* By the formula in zconf.h. */
static size_t memory_of(unsigned window_bits, unsigned memory_level)
{
    return ((size_t)1 << (window_bits + 2)) + ((size_t)1 << (memory_level + 9)) + DEFLATER_BYTES;
}

static void deflater_free(struct deflater *deflater)
{
    if (!deflater)
        return;
    deflateEnd(&deflater->stream);
    mem_free(deflater);
}

static struct deflater *deflater_new(int level, unsigned window_bits, int memory_level)
{
    struct deflater *deflater = mem_zalloc(sizeof(*deflater));

    if (!deflater)
        return NULL;
    deflater->stream.zalloc = zlib_alloc;
    deflater->stream.zfree = zlib_free;
    deflater->bytes = memory_of(window_bits, (unsigned)memory_level);
    if (deflateInit2(&deflater->stream, level, Z_DEFLATED, -(int)window_bits, memory_level,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        mem_free(deflater);
        return NULL;
    }
    return deflater;
}

/* With enough room nothing can fail, because deflate() allocates nothing. */
static int deflater_write(struct deflater *deflater, struct sl_slice plain, int flush,
                          struct buffer *block)
{
    z_stream *stream = &deflater->stream;

    stream->next_in = (Bytef *)plain.data;
    stream->avail_in = (uInt)plain.size;
    do {
        size_t room = deflateBound(stream, stream->avail_in) + 16;

        stream->next_out = (Bytef *)buffer_reserve(block, room);
        if (!stream->next_out)
            return -ENOMEM;
        stream->avail_out = (uInt)room;
        deflate(stream, flush);
        block->size += room - stream->avail_out;
    } while (stream->avail_out == 0);
    return 0;
}

/* --- the compressor --- */

struct compressor *compressor_new(const struct compressor_settings *settings)
{
    struct compressor *compressor = mem_zalloc(sizeof(*compressor));

    if (!compressor)
        return NULL;
    compressor->settings = *settings;
    list_init(&compressor->holders);
    compressor->alone = deflater_new(settings->level, DEFLATE_WINDOW_BITS_MIN, ALONE_MEMORY_LEVEL);
    compressor->zstd = zstd_writer_new(settings->zstd_level);
    if (!compressor->alone || !compressor->zstd) {
        compressor_free(compressor);
        return NULL;
    }
    return compressor;
}

void compressor_free(struct compressor *compressor)
{
    if (!compressor)
        return;
    assert(list_is_empty(&compressor->holders));
    deflater_free(compressor->alone);
    zstd_writer_free(compressor->zstd);
    buffer_done(&compressor->gathered);
    buffer_done(&compressor->scratch);
    mem_free(compressor);
}

const struct compressor_counts *compressor_counts(const struct compressor *compressor)
{
    return &compressor->counts;
}

uint32_t compressor_reset_flushes(const struct compressor *compressor)
{
    return compressor->settings.reset_flushes;
}

struct buffer *compressor_scratch(struct compressor *compressor)
{
    return &compressor->scratch;
}

static void count(struct compressor *compressor, enum stream_encoding encoding, uint64_t began_us,
                  bool is_block)
{
    compressor->counts.microseconds[encoding] += clock_monotonic_us() - began_us;
    compressor->counts.blocks[encoding] += is_block;
}

/* Writes a piece of a block. */
static int write_piece(struct compressor *compressor, struct deflater *deflater,
                       struct sl_slice plain, bool is_last, struct buffer *block)
{
    uint64_t began_us = clock_monotonic_us();
    int r = deflater_write(deflater, plain, is_last ? Z_SYNC_FLUSH : Z_NO_FLUSH, block);

    count(compressor, ENCODING_DEFLATE, began_us, is_last);
    return r;
}

/* --- independent blocks --- */

static int write_frame(struct compressor *compressor, struct coding coding, struct sl_slice plain,
                       struct buffer *frame)
{
    uint64_t began_us = clock_monotonic_us();
    int r = zstd_append_frame(compressor->zstd, coding.dictionary, plain, frame);

    count(compressor, coding.encoding, began_us, true);
    return r;
}

static int write_together(struct compressor *compressor, struct coding coding,
                          struct sl_slice plain, bool is_first, bool is_last, struct buffer *frame)
{
    struct buffer *gathered = &compressor->gathered;

    if (is_first && is_last)
        return write_frame(compressor, coding, plain, frame);
    if (is_first)
        buffer_clear(gathered);
    buffer_append_slice(gathered, plain);
    if (gathered->failed)
        return -ENOMEM;
    return is_last ? write_frame(compressor, coding, buffer_slice(gathered), frame) : 0;
}

int compressor_together(struct compressor *compressor, struct coding coding, struct sl_slice plain,
                        bool is_first, bool is_last, struct buffer *block)
{
    if (coding.encoding != ENCODING_DEFLATE)
        return write_together(compressor, coding, plain, is_first, is_last, block);
    if (is_first)
        deflateReset(&compressor->alone->stream);
    return write_piece(compressor, compressor->alone, plain, is_last, block);
}

int compressor_append_block(struct compressor *compressor, struct coding coding,
                            struct sl_slice plain, struct buffer *block)
{
    size_t before = block->size;
    int r = compressor_together(compressor, coding, plain, true, true, block);

    if (r < 0)
        block->size = before;
    return r;
}

void compressor_stored_head(size_t size, unsigned char ret_head[static BLOCK_STORED_HEAD])
{
    assert(size <= BLOCK_STORED_MAX);
    ret_head[0] = 0;
    ret_head[1] = (unsigned char)size;
    ret_head[2] = (unsigned char)(size >> 8);
    ret_head[3] = (unsigned char)~ret_head[1];
    ret_head[4] = (unsigned char)~ret_head[2];
}

/* Copies the scratch to memory of exactly its size. */
static struct sl_slice keep(struct compressor *compressor, struct event *event,
                            struct sl_slice *memo)
{
    struct sl_slice bytes = buffer_slice(&compressor->scratch);
    char *copy = compressor->scratch.failed ? NULL : mem_copy(bytes.data, bytes.size);

    if (!copy)
        return SL_SLICE_NONE;
    *memo = sl_slice(copy, bytes.size); /* the event frees it */
    event_grow(event, bytes.size);
    return *memo;
}

/* If the block would not be smaller, the message is sent uncompressed. */
static void render_websocket(enum stream_encoding encoding, struct sl_slice json,
                             struct sl_slice block, struct buffer *frame)
{
    bool is_deflate = encoding == ENCODING_DEFLATE;
    size_t size = is_deflate ? block.size - BLOCK_END_SIZE : block.size;

    if (size >= json.size)
        frame_append_message(frame, FORMAT_WEBSOCKET, NULL, json);
    else
        frame_append_websocket(frame, is_deflate ? FRAME_OPCODE_DEFLATED_TEXT : FRAME_OPCODE_BINARY,
                               sl_slice(block.data, size));
}

/* Into the scratch. 0; -ENOMEM. */
static int render(struct compressor *compressor, struct event *event, enum stream_format format,
                  struct coding coding)
{
    struct sl_slice plain = frame_inside(event, format);
    struct buffer block = BUFFER_INIT;
    int r = plain.data ? compressor_append_block(compressor, coding, plain, &block) : -ENOMEM;

    buffer_clear(&compressor->scratch);
    if (r == 0 && format == FORMAT_WEBSOCKET)
        render_websocket(coding.encoding, plain, buffer_slice(&block), &compressor->scratch);
    else if (r == 0)
        frame_append_chunk(&compressor->scratch, buffer_slice(&block));
    buffer_done(&block);
    return compressor->scratch.failed ? -ENOMEM : r;
}

/* The key of a zstd frame that is kept with an event; `place` is a format, or OPEN. */
enum { OPEN = FORMAT_COUNT, PLACES };

static uint64_t key_of(const struct dictionary *dictionary, unsigned place)
{
    return place + (dictionary && dictionary->tables ? (uint64_t)dictionary->known.id * PLACES : 0);
}

struct sl_slice compressor_frame(struct compressor *compressor, struct event *event,
                                 enum stream_format format, struct coding coding)
{
    bool is_deflate = coding.encoding == ENCODING_DEFLATE;
    struct sl_slice *memo = &event->frames[FRAME_DEFLATED + format];
    uint64_t key = key_of(coding.dictionary, format);
    struct sl_slice frame = is_deflate ? *memo : event_frame_at(event, key);

    if (frame.data)
        return frame;
    if (render(compressor, event, format, coding) < 0)
        return SL_SLICE_NONE;
    return is_deflate ? keep(compressor, event, memo)
                      : event_keep_frame(event, key, buffer_slice(&compressor->scratch));
}

struct sl_slice compressor_open_block(struct compressor *compressor, struct event *event,
                                      struct coding coding)
{
    const struct sl_slice open = sl_slice(event->json.data, event->json.size - 1);
    bool is_deflate = coding.encoding == ENCODING_DEFLATE;
    struct sl_slice *memo = &event->frames[FRAME_OPEN_BLOCK];
    uint64_t key = key_of(coding.dictionary, OPEN), began_us;
    struct sl_slice block = is_deflate ? *memo : event_frame_at(event, key);
    int r;

    if (block.data)
        return block;
    buffer_clear(&compressor->scratch);
    if (is_deflate)
        return compressor_append_block(compressor, coding, open, &compressor->scratch) < 0
                   ? SL_SLICE_NONE
                   : keep(compressor, event, memo);
    began_us = clock_monotonic_us();
    r = zstd_append_open(compressor->zstd, coding.dictionary, open, &compressor->scratch);
    count(compressor, coding.encoding, began_us, true);
    return r < 0 ? SL_SLICE_NONE : event_keep_frame(event, key, buffer_slice(&compressor->scratch));
}

/* --- histories --- */

static size_t worth(const struct history *history, uint64_t now_ms)
{
    return now_ms - history->used_ms > IDLE_MS ? 0 : history->clients;
}

/* The holder with the lowest value. NULL: there is none. */
static struct history *least_of(const struct compressor *compressor, uint64_t now_ms)
{
    struct history *least = NULL;

    LIST_EACH(&compressor->holders, node)
    {
        struct history *history = LIST_OWNER(node, struct history, node);

        if (!least || worth(history, now_ms) < worth(least, now_ms))
            least = history;
    }
    return least;
}

static void note_refusal(struct compressor *compressor, struct history *history, uint64_t asked_ms)
{
    compressor->counts.refused -= history->asked_ms != 0;
    compressor->counts.refused += asked_ms != 0;
    history->asked_ms = asked_ms;
}

static void take(struct compressor *compressor, struct history *history)
{
    list_remove(&compressor->holders, &history->node);
    compressor->counts.histories--;
    compressor->counts.history_bytes -= history->deflater->bytes;
    deflater_free(history->deflater);
    history->deflater = NULL;
}

static bool make_room(struct compressor *compressor, const struct history *history, size_t bytes,
                      uint64_t now_ms)
{
    while (compressor->counts.history_bytes + bytes > compressor->settings.max_bytes) {
        struct history *least = least_of(compressor, now_ms);

        if (!least || worth(least, now_ms) * 2 > history->clients)
            return false;
        take(compressor, least);
    }
    return true;
}

static void give(struct compressor *compressor, struct history *history, unsigned window_bits)
{
    history->deflater = deflater_new(compressor->settings.level, window_bits, HISTORY_MEMORY_LEVEL);
    if (!history->deflater)
        return;
    history->flushes = 0;
    note_refusal(compressor, history, 0);
    list_append(&compressor->holders, &history->node);
    compressor->counts.histories++;
    compressor->counts.history_bytes += history->deflater->bytes;
}

void compressor_hold(struct compressor *compressor, struct history *history, unsigned window_bits,
                     uint64_t now_ms)
{
    history->used_ms = now_ms;
    if (history->deflater || (history->asked_ms && now_ms - history->asked_ms < ASK_AGAIN_MS))
        return;
    if (make_room(compressor, history, memory_of(window_bits, HISTORY_MEMORY_LEVEL), now_ms))
        give(compressor, history, window_bits);
    if (history->deflater)
        return;
    note_refusal(compressor, history, now_ms);
    compressor->counts.refusals++;
}

void compressor_release(struct compressor *compressor, struct history *history)
{
    note_refusal(compressor, history, 0);
    if (history->deflater)
        take(compressor, history);
}

void compressor_reset(struct compressor *compressor, struct history *history)
{
    deflateReset(&history->deflater->stream);
    history->flushes = 0;
    compressor->counts.resets++;
}

int compressor_continue(struct compressor *compressor, struct history *history,
                        struct sl_slice plain, bool is_last, struct buffer *block)
{
    return write_piece(compressor, history->deflater, plain, is_last, block);
}
