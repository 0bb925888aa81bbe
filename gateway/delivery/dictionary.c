#include "gateway/delivery/dictionary.h"

#include <errno.h>

#include <zstd.h>

#include "base/alloc.h"

int dictionary_load(struct dictionary *dictionary, struct sl_slice bytes, int level)
{
    if (bytes.size > SL_DICTIONARY_BYTES_MAX ||
        ZSTD_getDictID_fromDict(bytes.data, bytes.size) != dictionary->known.id)
        return -EINVAL;
    dictionary->bytes = sl_slice(mem_copy(bytes.data, bytes.size), bytes.size);
    dictionary->tables = ZSTD_createCDict(bytes.data, bytes.size, level);
    if (dictionary->bytes.data && dictionary->tables)
        return 0;
    dictionary_unload(dictionary);
    return -ENOMEM;
}

void dictionary_unload(struct dictionary *dictionary)
{
    mem_free((void *)dictionary->bytes.data);
    ZSTD_freeCDict(dictionary->tables);
    dictionary->bytes = SL_SLICE_NONE;
    dictionary->tables = NULL;
}
