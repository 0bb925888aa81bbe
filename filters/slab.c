#include "filters/slab.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

void sl_slab_init(struct sl_slab *slab, uint32_t item_size)
{
    assert(item_size >= sizeof(slab->first_free)); /* a free item holds the number of the next
                                                      one */
    *slab = (struct sl_slab){.item_size = item_size, .first_free = UINT32_MAX};
}

void sl_slab_done(struct sl_slab *slab)
{
    for (uint32_t i = 0; i < slab->chunk_count; i++)
        mem_free(slab->chunks[i]);
    mem_free(slab->chunks);
    *slab = (struct sl_slab){.item_size = slab->item_size, .first_free = UINT32_MAX};
}

static int add_chunk(struct sl_slab *slab)
{
    if (slab->chunk_count == slab->chunk_capacity) {
        uint32_t capacity = slab->chunk_capacity ? slab->chunk_capacity * 2 : 4;
        char **chunks = mem_realloc(slab->chunks, capacity * sizeof(*chunks));

        if (!chunks)
            return -1;
        slab->chunks = chunks;
        slab->chunk_capacity = capacity;
    }
    slab->chunks[slab->chunk_count] = mem_alloc((size_t)SL_SLAB_CHUNK * slab->item_size);
    if (!slab->chunks[slab->chunk_count])
        return -1;
    slab->chunk_count++;
    return 0;
}

void *sl_slab_add(struct sl_slab *slab, uint32_t *ret_number)
{
    uint32_t number = slab->first_free;
    char *item;

    if (number != UINT32_MAX) {
        item = sl_slab_at(slab, number);
        memcpy(&slab->first_free, item, sizeof(slab->first_free));
    } else {
        number = slab->used;
        if (number == slab->chunk_count * SL_SLAB_CHUNK && add_chunk(slab) < 0)
            return NULL;
        slab->used++;
        item = sl_slab_at(slab, number);
    }
    slab->count++;
    *ret_number = number;
    return memset(item, 0, slab->item_size);
}

void sl_slab_remove(struct sl_slab *slab, uint32_t number)
{
    assert(number < slab->used && slab->count > 0);
    memcpy(sl_slab_at(slab, number), &slab->first_free, sizeof(slab->first_free));
    slab->first_free = number;
    slab->count--;
}

size_t sl_slab_bytes(const struct sl_slab *slab)
{
    return (size_t)slab->chunk_count * SL_SLAB_CHUNK * slab->item_size +
           slab->chunk_capacity * sizeof(*slab->chunks);
}
