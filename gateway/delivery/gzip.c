#include "gateway/delivery/gzip.h"

#include <zlib.h>

void gzip_sum_add(struct gzip_sum *sum, struct sl_slice bytes)
{
    sum->crc = (uint32_t)crc32_z(sum->crc, (const Bytef *)bytes.data, bytes.size);
    sum->bytes += bytes.size;
}

struct gzip_sum gzip_sum_between(const struct gzip_sum *from, const struct gzip_sum *to)
{
    uint64_t bytes = to->bytes - from->bytes;

    return (struct gzip_sum){
        .bytes = bytes, .crc = to->crc ^ (uint32_t)crc32_combine(from->crc, 0, (z_off_t)bytes)};
}

void gzip_sum_join(struct gzip_sum *sum, const struct gzip_sum *more)
{
    sum->crc = (uint32_t)crc32_combine(sum->crc, more->crc, (z_off_t)more->bytes);
    sum->bytes += more->bytes;
}

/* No name, time or flags; the operating system is "unknown" (255). */
void gzip_append_header(struct buffer *buffer)
{
    static const unsigned char header[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};

    buffer_append(buffer, header, sizeof(header));
}

void gzip_append_trailer(struct buffer *buffer, const struct gzip_sum *sum)
{
    unsigned char trailer[10] = {3, 0}; /* an empty last block with fixed codes */

    for (int i = 0; i < 4; i++) {
        trailer[2 + i] = (unsigned char)(sum->crc >> (8 * i));
        trailer[6 + i] = (unsigned char)(sum->bytes >> (8 * i));
    }
    buffer_append(buffer, trailer, sizeof(trailer));
}
