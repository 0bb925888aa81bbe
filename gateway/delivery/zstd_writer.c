/* zstd_writer.c - one context for all frames, and frames that are taken apart.
 *
 * A frame is made in one call, so that zstd knows the size of its content and uses small tables.
 * How an open frame is cut out of a complete one, and what surrounds it, follows from the format
 * (RFC 8878): a header, then blocks, the last of which has its first bit set. */
#include "gateway/delivery/zstd_writer.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include <zstd.h>

#include "base/alloc.h"

struct zstd_writer {
    ZSTD_CCtx *context;
};

struct zstd_writer *zstd_writer_new(int level)
{
    struct zstd_writer *writer = mem_zalloc(sizeof(*writer));

    if (!writer)
        return NULL;
    writer->context = ZSTD_createCCtx();
    if (!writer->context ||
        ZSTD_isError(ZSTD_CCtx_setParameter(writer->context, ZSTD_c_compressionLevel, level))) {
        zstd_writer_free(writer);
        return NULL;
    }
    return writer;
}

void zstd_writer_free(struct zstd_writer *writer)
{
    if (!writer)
        return;
    ZSTD_freeCCtx(writer->context);
    mem_free(writer);
}

int zstd_append_frame(struct zstd_writer *writer, const struct dictionary *dictionary,
                      struct sl_slice plain, struct buffer *frame)
{
    size_t bound = ZSTD_compressBound(plain.size);
    char *room = buffer_reserve(frame, bound);
    size_t size;

    if (!room ||
        ZSTD_isError(ZSTD_CCtx_refCDict(writer->context, dictionary ? dictionary->tables : NULL)))
        return -ENOMEM;
    size = ZSTD_compress2(writer->context, room, bound, plain.data, plain.size);
    if (ZSTD_isError(size))
        return -ENOMEM; /* for tables; there is room for any output */
    frame->size += size;
    return 0;
}

/* --- a frame with a separate end (RFC 8878, section 3.1.1) --- */

enum {
    MAGIC_SIZE = 4,
    SINGLE_SEGMENT = 1 << 5, /* of the descriptor: the window is the content */
    DICTIONARY_2_BYTES = 2,
    CONTENT_2_BYTES = 1 << 6,
    CONTENT_4_BYTES = 2 << 6,
    CONTENT_2_BYTES_FROM = 256, /* the first size stored in two bytes */
    BLOCK_IS_LAST = 1,
    BLOCK_RLE = 1 /* of the type, in the next two bits: the block is one byte */
};

static size_t head_size(const unsigned char *frame)
{
    static const uint8_t dictionary_sizes[] = {0, 1, 2, 4}, content_sizes[] = {0, 2, 4, 8};
    unsigned char descriptor = frame[MAGIC_SIZE];
    bool is_single = descriptor & SINGLE_SEGMENT;
    size_t content_size = content_sizes[descriptor >> 6];

    return MAGIC_SIZE + 1 + !is_single + dictionary_sizes[descriptor & 3] +
           (is_single && content_size == 0 ? 1 : content_size);
}

/* Clears the mark of the last block. */
static void open_blocks(unsigned char *blocks)
{
    while (!(blocks[0] & BLOCK_IS_LAST)) {
        size_t size = (size_t)(blocks[0] | blocks[1] << 8 | blocks[2] << 16) >> 3;

        blocks += ZSTD_LAST_HEAD + ((blocks[0] >> 1 & 3) == BLOCK_RLE ? 1 : size);
    }
    blocks[0] &= (unsigned char)~BLOCK_IS_LAST;
}

int zstd_append_open(struct zstd_writer *writer, const struct dictionary *dictionary,
                     struct sl_slice plain, struct buffer *blocks)
{
    struct buffer frame = BUFFER_INIT;
    size_t head;
    int r = zstd_append_frame(writer, dictionary, plain, &frame);

    if (r == 0) {
        head = head_size((const unsigned char *)frame.data);
        open_blocks((unsigned char *)frame.data + head);
        buffer_append(blocks, frame.data + head, frame.size - head);
        r = blocks->failed ? -ENOMEM : 0;
    }
    buffer_done(&frame);
    return r;
}

static size_t put_number(unsigned char *at, uint64_t number, size_t size)
{
    for (size_t i = 0; i < size; i++)
        at[i] = (unsigned char)(number >> (8 * i));
    return size;
}

size_t zstd_open_head(const struct dictionary *dictionary, size_t content_size,
                      unsigned char ret_head[static ZSTD_HEAD_MAX])
{
    unsigned char *descriptor = ret_head + MAGIC_SIZE, *at = descriptor + 1;

    put_number(ret_head, ZSTD_MAGICNUMBER, MAGIC_SIZE);
    *descriptor = SINGLE_SEGMENT;
    if (dictionary && dictionary->tables) {
        *descriptor |= DICTIONARY_2_BYTES;
        at += put_number(at, dictionary->known.id, 2);
    }
    if (content_size < CONTENT_2_BYTES_FROM) {
        at += put_number(at, content_size, 1);
    } else if (content_size < CONTENT_2_BYTES_FROM + (1 << 16)) {
        *descriptor |= CONTENT_2_BYTES;
        at += put_number(at, content_size - CONTENT_2_BYTES_FROM, 2);
    } else {
        *descriptor |= CONTENT_4_BYTES;
        at += put_number(at, content_size, 4);
    }
    return (size_t)(at - ret_head);
}

void zstd_last_head(size_t size, unsigned char ret_head[static ZSTD_LAST_HEAD])
{
    assert(size <= ZSTD_LAST_MAX);
    put_number(ret_head, size << 3 | BLOCK_IS_LAST, ZSTD_LAST_HEAD);
}
