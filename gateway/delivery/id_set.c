/* id_set.c - a hash set with linear probing; its capacity doubles when it is half full.
 *
 * Ids cannot be chosen by attackers, so a fixed hash function is used. It never shrinks; the owner
 * must limit the number of ids. */
#include "gateway/delivery/id_set.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/stable_hash.h"

enum { FIRST_CAPACITY = 64 };

static uint64_t *slot_of(uint64_t *ids, size_t capacity, uint64_t id)
{
    size_t i = stable_hash(id) & (capacity - 1);

    while (ids[i] && ids[i] != id)
        i = (i + 1) & (capacity - 1);
    return &ids[i];
}

static int grow(struct id_set *set)
{
    size_t capacity = set->capacity ? set->capacity * 2 : FIRST_CAPACITY;
    uint64_t *ids;

    if (2 * (set->count + 1) <= set->capacity)
        return 0;
    ids = mem_zalloc(mem_array_size(capacity, sizeof(*ids)));
    if (!ids)
        return -ENOMEM;
    for (size_t i = 0; i < set->capacity; i++) {
        if (set->ids[i])
            *slot_of(ids, capacity, set->ids[i]) = set->ids[i];
    }
    mem_free(set->ids);
    set->ids = ids;
    set->capacity = capacity;
    return 0;
}

void id_set_done(struct id_set *set)
{
    mem_free(set->ids);
    *set = (struct id_set){0};
}

int id_set_add(struct id_set *set, uint64_t id)
{
    uint64_t *slot;

    if (grow(set) < 0)
        return -ENOMEM;
    slot = slot_of(set->ids, set->capacity, id);
    set->count += *slot == 0;
    *slot = id;
    return 0;
}

bool id_set_has(const struct id_set *set, uint64_t id)
{
    return set->ids && *slot_of(set->ids, set->capacity, id) != 0;
}
