/* filters/slab.h - small things of one size, each known by a number, never moved.
 *
 * Memory comes in chunks, so that growing costs the same however many there are, and a pointer
 * stays good until its thing is removed. Numbers are dense; those of removed things are used
 * again, the last one first. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SL_SLAB_CHUNK = 256 }; /* things */

struct sl_slab {
    char **chunks;
    uint32_t chunk_count, chunk_capacity;
    uint32_t item_size;  /* at least 4: a free one holds the number of the next free one */
    uint32_t used;       /* numbers given out at least once */
    uint32_t first_free; /* UINT32_MAX: none */
    uint32_t count;      /* things alive */
};

void sl_slab_init(struct sl_slab *slab, uint32_t item_size);
void sl_slab_done(struct sl_slab *slab);

/* A new thing, all zero, and its number. NULL: out of memory. */
void *sl_slab_add(struct sl_slab *slab, uint32_t *ret_number);
/* The first four bytes of a removed thing are the slab's; the others stay as they are. */
void sl_slab_remove(struct sl_slab *slab, uint32_t number);

size_t sl_slab_bytes(const struct sl_slab *slab);

static inline void *sl_slab_at(const struct sl_slab *slab, uint32_t number)
{
    return slab->chunks[number / SL_SLAB_CHUNK] +
           (size_t)(number % SL_SLAB_CHUNK) * slab->item_size;
}
