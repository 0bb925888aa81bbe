/* gateway/delivery/id_set.h - a set of ids: open addressing, at most half full. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Initialize with {0}. */
struct id_set {
    uint64_t *ids; /* 0: an empty slot */
    size_t count, capacity;
};

void id_set_done(struct id_set *set);
/* `id` must not be 0. 0; -ENOMEM. */
int id_set_add(struct id_set *set, uint64_t id);
bool id_set_has(const struct id_set *set, uint64_t id);
