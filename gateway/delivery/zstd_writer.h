/* gateway/delivery/zstd_writer.h - frames of zstd (RFC 8878), each whole by itself.
 *
 * A frame refers to nothing but itself, and to a dictionary if it is made with one, whose id is in
 * its head. It says how long its content is, and has no checksum: the connection has one. Belongs
 * to one thread. */
#pragma once

#include <stddef.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "gateway/delivery/dictionary.h"

struct zstd_writer;

/* NULL: out of memory. */
struct zstd_writer *zstd_writer_new(int level);
void zstd_writer_free(struct zstd_writer *writer); /* NULL is fine */

/* `dictionary` NULL, or without tables: the frame refers to none. -ENOMEM: nothing is appended. */
int zstd_append_frame(struct zstd_writer *writer, const struct dictionary *dictionary,
                      struct sl_slice plain, struct buffer *frame);

/* --- a frame with an end of its own ---
 *
 * What is compressed once can be the beginning of many frames: a head, the blocks of an open frame,
 * and a last block that says its bytes as they are. */

enum { ZSTD_HEAD_MAX = 18, ZSTD_LAST_HEAD = 3, ZSTD_LAST_MAX = 64 << 10 };

/* The blocks alone. -ENOMEM: nothing is appended. */
int zstd_append_open(struct zstd_writer *writer, const struct dictionary *dictionary,
                     struct sl_slice plain, struct buffer *blocks);
/* The head of a frame that says `content_size` bytes in all; returns its size. */
size_t zstd_open_head(const struct dictionary *dictionary, size_t content_size,
                      unsigned char ret_head[static ZSTD_HEAD_MAX]);
/* What stands before the last `size` bytes, at most ZSTD_LAST_MAX. */
void zstd_last_head(size_t size, unsigned char ret_head[static ZSTD_LAST_HEAD]);
