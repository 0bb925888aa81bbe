/* dictionary_make.c - puts the header of zstd before the chosen strings.
 *
 * zstd could choose strings by itself (ZDICT_trainFromBuffer()), but would use any; so it is only
 * used for the header: tables of the frequencies of bytes, lengths and offsets when the samples are
 * compressed with these strings. No string can be recovered from a table. */
#include "cli/dictionary_make.h"

#include <errno.h>

#include <zdict.h>
#include <zstd.h>

#include "base/alloc.h"

enum {
    LEVEL = 6,     /* the default of sluiced */
    HEAD_MAX = 320 /* before the strings: what zdict.h says is needed, and some more */
};

/* Our own text, so it needs no authors. Its end is left out, because a JSON object begins with
 * it. */
static const char sse_head[] = "\nevent: post\ndata: {\"id\":\"";

/* The best ones are at the end, where references to them are cheapest. */
static void append_pieces(const struct pieces *pieces, struct buffer *strings)
{
    for (size_t i = pieces->count; i-- > 0;) {
        buffer_append_slice(strings, pieces->at[i]);
        if (i > 0)
            buffer_append_char(strings, DICTIONARY_SEPARATOR);
    }
    buffer_append(strings, sse_head, sizeof(sse_head) - 1);
}

/* In one of the stream formats, so that the tables include what surrounds the JSON. */
static void append_sample(struct sl_slice json, size_t number, struct buffer *all)
{
    static const struct {
        const char *before, *behind;
    } formats[] = {{"", ""}, {"", "\r\n"}, {"id: 0\nevent: post\ndata: ", "\n\n"}};
    size_t format = number % (sizeof(formats) / sizeof(formats[0]));

    buffer_append_str(all, formats[format].before);
    buffer_append_slice(all, json);
    buffer_append_str(all, formats[format].behind);
}

/* All samples concatenated, and the size of each, as zdict.h requires. */
static int join(const struct piece_sample *samples, size_t count, struct buffer *all,
                size_t **ret_sizes)
{
    size_t *sizes = mem_alloc(mem_array_size(count + 1, sizeof(*sizes)));

    for (size_t i = 0; sizes && i < count; i++) {
        size_t before = all->size;

        append_sample(samples[i].json, i, all);
        sizes[i] = all->size - before;
    }
    *ret_sizes = sizes;
    return sizes && !all->failed ? 0 : -ENOMEM;
}

static int finalize(const struct piece_sample *samples, size_t count, uint32_t id, size_t size,
                    struct sl_slice strings, struct buffer *dictionary, struct failure *reterr)
{
    const ZDICT_params_t params = {.compressionLevel = LEVEL, .dictID = id};
    struct buffer all = BUFFER_INIT;
    char *room = buffer_reserve(dictionary, size);
    size_t *sizes, made;
    int r = join(samples, count, &all, &sizes);

    if (r == 0 && room) {
        made = ZDICT_finalizeDictionary(room, size, strings.data, strings.size, all.data, sizes,
                                        (unsigned)count, params);
        if (ZDICT_isError(made))
            r = failure_set(reterr, -ENODATA, "zstd makes no dictionary of these posts: %s",
                            ZDICT_getErrorName(made));
        else
            dictionary->size += made;
    } else {
        r = failure_set(reterr, -ENOMEM, "out of memory");
    }
    mem_free(sizes);
    buffer_done(&all);
    return r;
}

int dictionary_make(struct piece_sample *samples, size_t count, uint32_t id, size_t size,
                    struct buffer *dictionary, struct failure *reterr)
{
    struct buffer strings = BUFFER_INIT;
    struct pieces pieces;
    int r = pieces_find(samples, count, size - HEAD_MAX - sizeof(sse_head), &pieces);

    if (r < 0)
        return failure_set(reterr, r, "out of memory");
    append_pieces(&pieces, &strings);
    if (strings.failed)
        r = failure_set(reterr, -ENOMEM, "out of memory");
    else if (pieces.count == 0)
        r = failure_set(reterr, -ENODATA, "no string in these posts has %d authors", PIECE_AUTHORS);
    else
        r = finalize(samples, count, id, size, buffer_slice(&strings), dictionary, reterr);
    pieces_done(&pieces);
    buffer_done(&strings);
    return r;
}

size_t dictionary_strings_at(struct sl_slice dictionary)
{
    size_t size = ZDICT_getDictHeaderSize(dictionary.data, dictionary.size);

    return ZDICT_isError(size) ? 0 : size;
}

/* The size of the frame; 0: out of memory. */
static size_t compress(ZSTD_CCtx *context, struct sl_slice json, struct buffer *room)
{
    size_t bound = ZSTD_compressBound(json.size), size;

    buffer_clear(room);
    if (!buffer_reserve(room, bound))
        return 0;
    size = ZSTD_compress2(context, room->data, bound, json.data, json.size);
    return ZSTD_isError(size) ? 0 : size;
}

int dictionary_measure(const struct piece_sample *samples, size_t count, struct sl_slice dictionary,
                       struct dictionary_measure *ret_measure)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CDict *tables = ZSTD_createCDict(dictionary.data, dictionary.size, LEVEL);
    struct buffer room = BUFFER_INIT;
    int r = context && tables ? 0 : -ENOMEM;

    if (r == 0)
        ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL);
    *ret_measure = (struct dictionary_measure){.events = count};
    for (size_t i = 0; r == 0 && i < count; i++) {
        size_t by_itself, with_it;

        ZSTD_CCtx_refCDict(context, NULL);
        by_itself = compress(context, samples[i].json, &room);
        ZSTD_CCtx_refCDict(context, tables);
        with_it = compress(context, samples[i].json, &room);
        ret_measure->bytes += samples[i].json.size;
        ret_measure->by_itself += by_itself;
        ret_measure->with_it += with_it;
        r = by_itself && with_it ? 0 : -ENOMEM;
    }
    buffer_done(&room);
    ZSTD_freeCDict(tables);
    ZSTD_freeCCtx(context);
    return r;
}
