#include "filters/token_map.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "filters/words_private.h"

void sl_token_map_done(struct sl_token_map *map)
{
    mem_free(map->heads);
    mem_free(map->nexts);
    *map = (struct sl_token_map){0};
}

int sl_token_map_expect(struct sl_token_map *map, size_t count)
{
    size_t capacity = map->capacity ? map->capacity : 128;
    uint32_t *heads, *nexts;

    map->made = false;
    if (count <= map->capacity)
        return 0;
    while (capacity < count)
        capacity *= 2;
    heads = mem_realloc(map->heads, mem_array_size(capacity, sizeof(*heads)));
    if (!heads)
        return -ENOMEM;
    map->heads = heads;
    nexts = mem_realloc(map->nexts, mem_array_size(capacity, sizeof(*nexts)));
    if (!nexts)
        return -ENOMEM;
    map->nexts = nexts;
    map->capacity = capacity;
    return 0;
}

static void make(struct sl_token_map *map, const struct sl_token *tokens, size_t count)
{
    map->buckets = 16;
    while (map->buckets < count)
        map->buckets *= 2;
    memset(map->heads, 0, map->buckets * sizeof(*map->heads));
    for (size_t i = count; i-- > 0;) { /* from the end, so that chains are in ascending order */
        uint32_t *head = &map->heads[tokens[i].hash % map->buckets];

        map->nexts[i] = *head;
        *head = (uint32_t)i + 1;
    }
    map->made = true;
}

size_t sl_token_map_first(struct sl_token_map *map, const struct sl_token *tokens, size_t count,
                          uint64_t hash)
{
    uint32_t head;

    if (count == 0)
        return 0;
    if (!map->made)
        make(map, tokens, count);
    head = map->heads[hash % map->buckets];
    return head > 0 ? head - 1 : count;
}
