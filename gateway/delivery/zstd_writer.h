/* gateway/delivery/zstd_writer.h - writes frames of zstd (RFC 8878).
 *
 * A frame refers to nothing before it, except to a dictionary, if it was made with one, whose id is
 * in the header. It contains the size of its content, and no checksum, because the connection has
 * one. Belongs to one thread. */
#pragma once

#include <stddef.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "gateway/delivery/dictionary.h"

struct zstd_writer;

/* NULL: out of memory. */
struct zstd_writer *zstd_writer_new(int level);
void zstd_writer_free(struct zstd_writer *writer); /* NULL is allowed */

/* `dictionary` NULL, or without tables: no dictionary is used. -ENOMEM: nothing is appended. */
int zstd_append_frame(struct zstd_writer *writer, const struct dictionary *dictionary,
                      struct sl_slice plain, struct buffer *frame);

/* --- frames with a separate end ---
 *
 * Data that is compressed once can be the beginning of many frames: a header, the blocks of an open
 * frame, and a last block with uncompressed bytes. */

enum { ZSTD_HEAD_MAX = 18, ZSTD_LAST_HEAD = 3, ZSTD_LAST_MAX = 64 << 10 };

/* Only the blocks. -ENOMEM: nothing is appended. */
int zstd_append_open(struct zstd_writer *writer, const struct dictionary *dictionary,
                     struct sl_slice plain, struct buffer *blocks);
/* The header of a frame with `content_size` bytes of content. Returns its size. */
size_t zstd_open_head(const struct dictionary *dictionary, size_t content_size,
                      unsigned char ret_head[static ZSTD_HEAD_MAX]);
/* The header of the last block with `size` bytes, at most ZSTD_LAST_MAX. */
void zstd_last_head(size_t size, unsigned char ret_head[static ZSTD_LAST_HEAD]);
