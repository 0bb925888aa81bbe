/* gateway/delivery/gzip.h - the header, trailer and checksum of a gzip member (RFC 1952).
 *
 * Between header and trailer are deflate blocks; the checksum does not depend on how they are
 * divided. The checksum of data that many clients were sent is computed once: checksums can be
 * joined, and a beginning can be removed. */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"

/* The checksum of uncompressed bytes; zeroed: of none. */
struct gzip_sum {
    uint64_t bytes;
    uint32_t crc; /* CRC-32 */
};

void gzip_sum_add(struct gzip_sum *sum, struct sl_slice bytes);
/* The checksum of the bytes between two positions. */
struct gzip_sum gzip_sum_between(const struct gzip_sum *from, const struct gzip_sum *to);
/* Appends bytes with the checksum `more`. */
void gzip_sum_join(struct gzip_sum *sum, const struct gzip_sum *more);

void gzip_append_header(struct buffer *buffer);
/* An empty last block, and the checksum. */
void gzip_append_trailer(struct buffer *buffer, const struct gzip_sum *sum);
