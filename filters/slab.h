/* filters/slab.h - an allocator for numbered objects of one size, which never move.
 *
 * Memory is allocated in chunks, so growing costs the same however many objects there are, and a
 * pointer is valid until its object is removed. Numbers are dense; those of removed objects are
 * used again, the last one first. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SL_SLAB_CHUNK = 256 }; /* objects */

struct sl_slab {
    char **chunks;
    uint32_t chunk_count, chunk_capacity;
    uint32_t item_size;  /* at least 4: a free one holds the number of the next free one */
    uint32_t used;       /* numbers used at least once */
    uint32_t first_free; /* UINT32_MAX: none */
    uint32_t count;      /* objects in use */
};

void sl_slab_init(struct sl_slab *slab, uint32_t item_size);
void sl_slab_done(struct sl_slab *slab);

/* Adds a zeroed object and returns it with its number. NULL: out of memory. */
void *sl_slab_add(struct sl_slab *slab, uint32_t *ret_number);
/* The slab overwrites the first four bytes of a removed object; the others stay as they are. */
void sl_slab_remove(struct sl_slab *slab, uint32_t number);

size_t sl_slab_bytes(const struct sl_slab *slab);

static inline void *sl_slab_at(const struct sl_slab *slab, uint32_t number)
{
    return slab->chunks[number / SL_SLAB_CHUNK] +
           (size_t)(number % SL_SLAB_CHUNK) * slab->item_size;
}
