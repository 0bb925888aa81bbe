/* gateway/delivery/gzip.h - the beginning and the end of a gzip member (RFC 1952), and the sum at
 * its end.
 *
 * What stands between them are deflate blocks; which they are, the sum does not care. Sums of
 * pieces that many have been sent are made once: sums can be joined, and a part be taken off the
 * front. */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"

/* Of some bytes before compression; zeroed: of none. */
struct gzip_sum {
    uint64_t bytes;
    uint32_t crc; /* CRC-32 */
};

void gzip_sum_add(struct gzip_sum *sum, struct sl_slice bytes);
/* The sum of what lies between the two. */
struct gzip_sum gzip_sum_between(const struct gzip_sum *from, const struct gzip_sum *to);
/* Appends bytes whose sum is `more`. */
void gzip_sum_join(struct gzip_sum *sum, const struct gzip_sum *more);

void gzip_append_header(struct buffer *buffer);
/* A last block, which is empty, and the sum. */
void gzip_append_trailer(struct buffer *buffer, const struct gzip_sum *sum);
