#include "gateway/delivery/zstd_writer.h"

#include <errno.h>

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

int zstd_append_frame(struct zstd_writer *writer, struct sl_slice plain, struct buffer *frame)
{
    size_t bound = ZSTD_compressBound(plain.size);
    char *room = buffer_reserve(frame, bound);
    size_t size;

    if (!room)
        return -ENOMEM;
    size = ZSTD_compress2(writer->context, room, bound, plain.data, plain.size);
    if (ZSTD_isError(size))
        return -ENOMEM; /* of tables; there is room for whatever comes out */
    frame->size += size;
    return 0;
}
