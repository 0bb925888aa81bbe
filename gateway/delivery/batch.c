/* batch.c - converts entries to frames; compressed data are made once for all clients at the same
 * position.
 *
 * A single entry is one shared frame: uncompressed, or compressed without reference to other data.
 * With a history, the entries of a flush are written to one buffer, the compressor's scratch: on a
 * WebSocket as one message each, over HTTP as one chunk for all. A client is sent complete frames:
 * if its socket accepts only a part of one, the rest is held for it (outbox.c). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/delivery/compressor.h"
#include "gateway/delivery/outbox_parts.h"

static bool is_compressed(const struct outbox *outbox)
{
    return outbox->settings.encoding != ENCODING_NONE;
}

static struct coding coding_of(const struct outbox *outbox)
{
    return (struct coding){outbox->settings.encoding, outbox->settings.dictionary};
}

static bool is_websocket(const struct outbox *outbox)
{
    return outbox->settings.format == FORMAT_WEBSOCKET;
}

static void begin(const struct outbox *outbox, uint64_t from, struct batch *batch)
{
    const struct event *event = entry_at(outbox, from)->event;

    batch->count = batch->frame_count = 0;
    batch->bytes = 0;
    batch->is_one_frame = false;
    batch->from = batch->to = from;
    batch->received_us = event->received_us;
    batch->is_timed = event->kind != EVENT_KEEPALIVE;
    batch->untimed = 0;
}

static void end_frame(struct batch *batch, size_t size, uint64_t to)
{
    batch->frames[batch->frame_count++] = (uint32_t)size;
    batch->bytes += size;
    batch->to = to;
}

/* --- separate entries --- */

static struct sl_slice shared_frame(const struct outbox *outbox, struct event *event)
{
    enum stream_format format = outbox->settings.format;
    struct sl_slice frame =
        is_compressed(outbox)
            ? compressor_frame(outbox->settings.compressor, event, format, coding_of(outbox))
            : frame_of_event(event, format);

    return frame.data && outbox->settings.unchunked ? frame_unchunk(frame) : frame;
}

static int wrapped_pieces(const struct outbox_entry *entry, struct iovec *pieces)
{
    const struct event *event = entry->event;
    struct wrapping *wrapping = entry->wrapping;
    struct sl_slice open = wrapping->open;

    pieces[0] = (struct iovec){wrapping->head, wrapping->head_size};
    if (open.data) {
        pieces[1] = (struct iovec){(char *)open.data, open.size};
        pieces[2] = (struct iovec){wrapping->tail, wrapping->tail_size};
        return 3;
    }
    pieces[1] = (struct iovec){(char *)event->json.data, event->json.size - 1};
    pieces[2] = (struct iovec){wrapping->tail, wrapping->tail_size};
    pieces[3] = (struct iovec){(char *)wrapping->end.data, wrapping->end.size};
    return 4;
}

/* The number of pieces; -ENOMEM. */
static int pieces_of(const struct outbox *outbox, const struct outbox_entry *entry,
                     struct iovec *pieces)
{
    struct sl_slice frame;

    if (entry->wrapping)
        return wrapped_pieces(entry, pieces);
    frame = shared_frame(outbox, entry->event);
    if (!frame.data)
        return -ENOMEM;
    pieces[0] = (struct iovec){(char *)frame.data, frame.size};
    return 1;
}

int batch_fill(struct outbox *outbox, uint64_t from, uint64_t to, struct batch *batch)
{
    begin(outbox, from, batch);
    for (; from < to && batch->count + ENTRY_MAX_PIECES <= BATCH_MAX_PIECES; from++) {
        struct iovec *pieces = batch->pieces + batch->count;
        int count = pieces_of(outbox, entry_at(outbox, from), pieces);
        size_t size = 0;

        if (count < 0)
            return batch->count > 0 ? 0 : count;
        for (int i = 0; i < count; i++)
            size += pieces[i].iov_len;
        batch->count += count;
        end_frame(batch, size, from + 1);
    }
    return 0;
}

/* --- several together --- */

static struct sl_slice inside(const struct outbox *outbox, uint64_t position)
{
    return frame_inside(entry_at(outbox, position)->event, outbox->settings.format);
}

/* open_frame() leaves room for the head; the functions after it put head and end around what was
 * appended after `begin`. */
enum { HEAD_ROOM = 16 };

static char *open_frame(struct buffer *scratch)
{
    char *room = buffer_reserve(scratch, HEAD_ROOM);

    scratch->size += room ? HEAD_ROOM : 0;
    return room;
}

/* The head is put directly before the payload, so there may be unused bytes before it. Returns
 * where the frame begins. */
static size_t close_websocket(struct buffer *scratch, size_t begin)
{
    unsigned char head[FRAME_WEBSOCKET_HEAD_SIZE];
    size_t payload = begin + HEAD_ROOM, size;

    scratch->size -= BLOCK_END_SIZE;
    size = frame_websocket_head(FRAME_OPCODE_DEFLATED_TEXT, scratch->size - payload, head);
    memcpy(scratch->data + payload - size, head, size);
    return payload - size;
}

static size_t close_chunk(struct buffer *scratch, size_t begin)
{
    char head[HEAD_ROOM];
    size_t payload = begin + HEAD_ROOM;
    int size = snprintf(head, sizeof(head), "%zx\r\n", scratch->size - payload);

    memcpy(scratch->data + payload - size, head, (size_t)size);
    buffer_append_str(scratch, "\r\n");
    return payload - (size_t)size;
}

/* One message for each entry, in one history. */
static int fill_messages(struct outbox *outbox, uint64_t from, uint64_t to, struct batch *batch)
{
    struct compressor *compressor = outbox->settings.compressor;
    struct buffer *scratch = compressor_scratch(compressor);
    size_t begins[BATCH_MAX_PIECES];

    buffer_clear(scratch);
    for (; from < to && batch->frame_count < BATCH_MAX_PIECES; from++) {
        size_t begin = scratch->size;

        if (!open_frame(scratch) || compressor_continue(compressor, &outbox->history,
                                                        inside(outbox, from), true, scratch) < 0)
            return -ENOMEM;
        begin = close_websocket(scratch, begin);
        begins[batch->frame_count] = begin;
        end_frame(batch, scratch->size - begin, from + 1);
    }
    batch->count = batch->frame_count;
    for (int i = 0; i < batch->count; i++)
        batch->pieces[i] = (struct iovec){scratch->data + begins[i], batch->frames[i]};
    return 0;
}

/* One chunk, or its content. */
static int fill_chunk(struct outbox *outbox, uint64_t from, uint64_t to, struct history *history,
                      struct batch *batch)
{
    struct compressor *compressor = outbox->settings.compressor;
    struct buffer *scratch = compressor_scratch(compressor);
    size_t begin = 0;

    buffer_clear(scratch);
    if (!outbox->settings.unchunked)
        open_frame(scratch);
    for (uint64_t p = from; p < to; p++) {
        bool is_last = p + 1 == to;
        struct sl_slice plain = inside(outbox, p);

        if ((history ? compressor_continue(compressor, history, plain, is_last, scratch)
                     : compressor_together(compressor, coding_of(outbox), plain, p == from, is_last,
                                           scratch)) < 0)
            return -ENOMEM;
    }
    if (!outbox->settings.unchunked)
        begin = close_chunk(scratch, 0);
    if (scratch->failed)
        return -ENOMEM;
    batch->is_one_frame = true;
    end_frame(batch, scratch->size - begin, to);
    batch->pieces[batch->count++] = (struct iovec){scratch->data + begin, batch->bytes};
    return 0;
}

int batch_fill_with_history(struct outbox *outbox, uint64_t from, uint64_t to, struct batch *batch)
{
    begin(outbox, from, batch);
    return is_websocket(outbox) ? fill_messages(outbox, from, to, batch)
                                : fill_chunk(outbox, from, to, &outbox->history, batch);
}

int batch_fill_together(struct outbox *outbox, uint64_t from, uint64_t to, struct batch *batch)
{
    if (!is_compressed(outbox) || is_websocket(outbox) || to - from == 1)
        return batch_fill(outbox, from, to, batch);
    begin(outbox, from, batch);
    return fill_chunk(outbox, from, to, NULL, batch);
}

/* --- the rest after a partial send --- */

uint64_t batch_rest(const struct batch *batch, size_t sent,
                    struct iovec ret_pieces[static ENTRY_MAX_PIECES], int *ret_count)
{
    size_t begin = 0, end, at = 0;
    int frame = 0, count = 0;

    assert(sent < batch->bytes);
    while (begin + batch->frames[frame] <= sent)
        begin += batch->frames[frame++];
    end = begin + batch->frames[frame];
    for (int i = 0; i < batch->count && at < end; i++) {
        const struct iovec *piece = &batch->pieces[i];
        size_t skip = sent > at ? sent - at : 0;

        if (skip < piece->iov_len) {
            assert(count < ENTRY_MAX_PIECES);
            ret_pieces[count++] =
                (struct iovec){(char *)piece->iov_base + skip, piece->iov_len - skip};
        }
        at += piece->iov_len;
    }
    *ret_count = count;
    return batch->from + (uint64_t)frame;
}

/* --- the parts for one client --- */

/* With room for the tail and these numbers of bytes before and after it. */
static struct wrapping *wrapping_new(size_t before, struct sl_slice tail, size_t behind)
{
    size_t size = before + tail.size + behind;
    struct wrapping *wrapping = mem_alloc(sizeof(*wrapping) + size);

    if (!wrapping)
        return NULL;
    wrapping->open = SL_SLICE_NONE;
    wrapping->tail_size = (uint32_t)size;
    wrapping->said = sl_slice(memcpy(wrapping->tail + before, tail.data, tail.size), tail.size);
    return wrapping;
}

/* The tail is uncompressed, in a block of its own, so that the content of an event is never
 * compressed together with the names of a client's rules. After it comes the first byte of an empty
 * block, as in every message. */
static struct wrapping *wrap_deflated(struct sl_slice block, struct sl_slice tail)
{
    size_t size = BLOCK_STORED_HEAD + tail.size + 2;
    struct wrapping *wrapping = wrapping_new(BLOCK_STORED_HEAD, tail, 2);

    if (!wrapping)
        return NULL;
    wrapping->open = block;
    wrapping->head_size = (uint8_t)frame_websocket_head(FRAME_OPCODE_DEFLATED_TEXT,
                                                        block.size + size, wrapping->head);
    compressor_stored_head(tail.size + 1, (unsigned char *)wrapping->tail);
    memcpy(wrapping->tail + BLOCK_STORED_HEAD + tail.size, "}", 2);
    return wrapping;
}

/* The same for zstd. */
static struct wrapping *wrap_zstd(const struct dictionary *dictionary, const struct event *event,
                                  struct sl_slice blocks, struct sl_slice tail)
{
    size_t size = ZSTD_LAST_HEAD + tail.size + 1;
    struct wrapping *wrapping = wrapping_new(ZSTD_LAST_HEAD, tail, 1);
    unsigned char head[ZSTD_HEAD_MAX];
    size_t head_size, websocket_size;

    if (!wrapping)
        return NULL;
    wrapping->open = blocks;
    head_size = zstd_open_head(dictionary, event->json.size + tail.size, head);
    websocket_size =
        frame_websocket_head(FRAME_OPCODE_BINARY, head_size + blocks.size + size, wrapping->head);
    memcpy(wrapping->head + websocket_size, head, head_size);
    wrapping->head_size = (uint8_t)(websocket_size + head_size);
    zstd_last_head(tail.size + 1, (unsigned char *)wrapping->tail);
    wrapping->tail[ZSTD_LAST_HEAD + tail.size] = '}';
    return wrapping;
}

static struct wrapping *wrap_plain(const struct event *event, struct sl_slice tail)
{
    struct wrapping *wrapping = wrapping_new(0, tail, 0);

    if (!wrapping)
        return NULL;
    wrapping->head_size = (uint8_t)frame_websocket_head(
        FRAME_OPCODE_TEXT, event->json.size + tail.size, wrapping->head);
    wrapping->end = SL_SLICE("}");
    return wrapping;
}

/* A line in a chunk of its own. */
static struct wrapping *wrap_line(const struct outbox *outbox, const struct event *event,
                                  struct sl_slice tail)
{
    struct wrapping *wrapping = wrapping_new(0, tail, 0);

    if (!wrapping)
        return NULL;
    wrapping->head_size = 0;
    if (!outbox->settings.unchunked)
        wrapping->head_size = (uint8_t)snprintf((char *)wrapping->head, sizeof(wrapping->head),
                                                "%zx\r\n", event->json.size + tail.size + 2);
    wrapping->end = outbox->settings.unchunked ? SL_SLICE("}\r\n") : SL_SLICE("}\r\n\r\n");
    return wrapping;
}

/* The maximum number of bytes around a block, for both encodings. */
enum { BLOCK_AROUND_MAX = ZSTD_HEAD_MAX + ZSTD_LAST_HEAD };
static_assert((int)BLOCK_STORED_HEAD <= (int)BLOCK_AROUND_MAX &&
                  (int)BLOCK_STORED_MAX <= (int)ZSTD_LAST_MAX,
              "either fits");

struct wrapping *batch_wrap(const struct outbox *outbox, struct event *event, struct sl_slice tail)
{
    const struct coding coding = coding_of(outbox);
    struct sl_slice block;

    if (!is_websocket(outbox))
        return wrap_line(outbox, event, tail);
    if (!is_compressed(outbox) || tail.size >= BLOCK_STORED_MAX)
        return wrap_plain(event, tail);
    block = compressor_open_block(outbox->settings.compressor, event, coding);
    if (!block.data)
        return NULL;
    if (block.size + BLOCK_AROUND_MAX >= event->json.size)
        return wrap_plain(event, tail);
    return coding.encoding == ENCODING_DEFLATE ? wrap_deflated(block, tail)
                                               : wrap_zstd(coding.dictionary, event, block, tail);
}
