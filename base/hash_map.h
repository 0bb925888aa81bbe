/* base/hash_map.h - byte string -> pointer.
 *
 * Open addressing with linear probing; keys are copied, values are the caller's. Belongs to one
 * thread. Adding during a walk is not allowed, removing the current key is. */
#pragma once

#include <stddef.h>

#include "base/slice.h"

struct hash_map;

struct hash_map *hash_map_new(void);
void hash_map_free(struct hash_map *map); /* the values are not touched */

size_t hash_map_count(const struct hash_map *map);
void *hash_map_get(const struct hash_map *map, struct sl_slice key); /* NULL: not there */

/* 0; -EEXIST: the key is there already (nothing changes); -ENOMEM. `value` is not NULL. */
int hash_map_add(struct hash_map *map, struct sl_slice key, void *value);
/* Returns what was filed under `key`; NULL: it was not there. */
void *hash_map_remove(struct hash_map *map, struct sl_slice key);

/* Walks all pairs in no order: for (size_t at = 0; hash_map_next(map, &at, &key, &value);) ... */
bool hash_map_next(const struct hash_map *map, size_t *at, struct sl_slice *ret_key,
                   void **ret_value);
