/* filters/list.h - grows an array; internal. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

/* Returns `items` with room for `more` elements after the first `count`, possibly moved. *capacity
 * counts elements. NULL: out of memory, nothing has changed. */
static inline void *sl_list_grow(void *items, size_t count, size_t *capacity, size_t more,
                                 size_t element_size)
{
    size_t wanted = *capacity > 0 ? *capacity : 16;
    void *grown;

    if (items && *capacity - count >= more)
        return items;
    while (wanted - count < more) {
        if (wanted > SIZE_MAX / 4)
            return NULL;
        wanted *= 2;
    }
    grown = mem_realloc(items, mem_array_size(wanted, element_size));
    if (grown)
        *capacity = wanted;
    return grown;
}
