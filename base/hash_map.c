/* hash_map.c - open addressing with linear probing; tombstones are removed by rehashing.
 *
 * A removed slot stays a tombstone (key NULL, `dead` set), so that an iteration may remove its
 * current key. The table is rebuilt when live and dead slots together would fill three quarters of
 * it. */
#include "base/hash_map.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/hash.h"

struct slot {
    uint64_t hash;
    char *key; /* NULL: empty or dead */
    size_t key_size;
    void *value;
    bool dead;
};

struct hash_map {
    struct hash_key key;
    struct slot *slots;
    size_t capacity; /* a power of two */
    size_t live;
    size_t dead;
};

enum { FIRST_CAPACITY = 16 };

struct hash_map *hash_map_new(void)
{
    struct hash_map *map = mem_zalloc(sizeof(*map));

    if (!map)
        return NULL;
    map->slots = mem_zalloc(FIRST_CAPACITY * sizeof(*map->slots));
    if (!map->slots) {
        mem_free(map);
        return NULL;
    }
    map->capacity = FIRST_CAPACITY;
    map->key = hash_key_random();
    return map;
}

void hash_map_free(struct hash_map *map)
{
    if (!map)
        return;
    for (size_t i = 0; i < map->capacity; i++)
        mem_free(map->slots[i].key);
    mem_free(map->slots);
    mem_free(map);
}

size_t hash_map_count(const struct hash_map *map)
{
    return map->live;
}

static struct slot *find(const struct hash_map *map, struct sl_slice key, uint64_t hash)
{
    size_t mask = map->capacity - 1;

    assert(map->live + map->dead < map->capacity); /* otherwise the search would not end */
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct slot *slot = &map->slots[i];

        if (!slot->key && !slot->dead)
            return NULL;
        if (slot->key && slot->hash == hash &&
            sl_slice_equal(sl_slice(slot->key, slot->key_size), key))
            return slot;
    }
}

static void put_slot(struct slot *slots, size_t capacity, struct slot slot)
{
    size_t mask = capacity - 1;
    size_t i = slot.hash & mask;

    while (slots[i].key || slots[i].dead)
        i = (i + 1) & mask;
    slots[i] = slot;
}

static int make_room(struct hash_map *map)
{
    size_t capacity = map->capacity;
    struct slot *slots;

    if ((map->live + map->dead + 1) * 4 <= capacity * 3)
        return 0;
    if ((map->live + 1) * 2 > capacity)
        capacity *= 2;
    slots = mem_zalloc(mem_array_size(capacity, sizeof(*slots)));
    if (!slots)
        return -ENOMEM;
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].key)
            put_slot(slots, capacity, map->slots[i]);
    }
    mem_free(map->slots);
    map->slots = slots;
    map->capacity = capacity;
    map->dead = 0;
    return 0;
}

void *hash_map_get(const struct hash_map *map, struct sl_slice key)
{
    struct slot *slot = find(map, key, hash_slice(map->key, key));

    return slot ? slot->value : NULL;
}

int hash_map_add(struct hash_map *map, struct sl_slice key, void *value)
{
    struct slot slot = {.hash = hash_slice(map->key, key), .key_size = key.size, .value = value};
    int r;

    if (find(map, key, slot.hash))
        return -EEXIST;
    r = make_room(map);
    if (r < 0)
        return r;
    slot.key = mem_strndup(key.data, key.size);
    if (!slot.key)
        return -ENOMEM;
    put_slot(map->slots, map->capacity, slot);
    map->live++;
    return 0;
}

void *hash_map_remove(struct hash_map *map, struct sl_slice key)
{
    struct slot *slot = find(map, key, hash_slice(map->key, key));
    void *value;

    if (!slot)
        return NULL;
    value = slot->value;
    mem_free(slot->key);
    *slot = (struct slot){.dead = true};
    map->live--;
    map->dead++;
    return value;
}

bool hash_map_next(const struct hash_map *map, size_t *at, struct sl_slice *ret_key,
                   void **ret_value)
{
    while (*at < map->capacity) {
        const struct slot *slot = &map->slots[(*at)++];

        if (!slot->key)
            continue;
        if (ret_key)
            *ret_key = sl_slice(slot->key, slot->key_size);
        if (ret_value)
            *ret_value = slot->value;
        return true;
    }
    return false;
}
