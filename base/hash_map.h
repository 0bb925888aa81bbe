/* base/hash_map.h - a map from byte strings to pointers.
 *
 * Open addressing with linear probing. Keys are copied; values are owned by the caller. Belongs
 * to one thread. During an iteration, nothing may be added, and only the current key may be
 * removed. */
#pragma once

#include <stddef.h>

#include "base/slice.h"

struct hash_map;

struct hash_map *hash_map_new(void);
void hash_map_free(struct hash_map *map); /* does not free the values */

size_t hash_map_count(const struct hash_map *map);
void *hash_map_get(const struct hash_map *map, struct sl_slice key); /* NULL: no such key */

/* 0; -EEXIST: the key exists, nothing has changed; -ENOMEM. `value` must not be NULL. */
int hash_map_add(struct hash_map *map, struct sl_slice key, void *value);
/* Returns the value of the removed key; NULL: no such key. */
void *hash_map_remove(struct hash_map *map, struct sl_slice key);

/* Iterates over all pairs in no particular order: for (size_t at = 0; hash_map_next(map, &at, &key,
 * &value);) ... */
bool hash_map_next(const struct hash_map *map, size_t *at, struct sl_slice *ret_key,
                   void **ret_value);
