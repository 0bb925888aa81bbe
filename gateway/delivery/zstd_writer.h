/* gateway/delivery/zstd_writer.h - frames of zstd (RFC 8878), each whole by itself.
 *
 * A frame refers to nothing but itself, and to a dictionary if it is made with one, whose id is in
 * its head. It says how long its content is, and has no checksum: the connection has one. Belongs
 * to one thread. */
#pragma once

#include "base/buffer.h"
#include "base/slice.h"

struct zstd_writer;

/* NULL: out of memory. */
struct zstd_writer *zstd_writer_new(int level);
void zstd_writer_free(struct zstd_writer *writer); /* NULL is fine */

/* -ENOMEM: nothing is appended. */
int zstd_append_frame(struct zstd_writer *writer, struct sl_slice plain, struct buffer *frame);
