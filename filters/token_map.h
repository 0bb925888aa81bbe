/* filters/token_map.h - where in a text does a word stand? internal.
 *
 * Made from the tokens of a text when it is first asked: most texts are asked for no word at all,
 * since no filter is a candidate; others are asked for hundreds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_token;

struct sl_token_map {
    uint32_t *heads; /* hash -> position + 1 of the first token with such a hash; 0: none */
    uint32_t *nexts; /* position -> position + 1 of the next one; 0: none */
    size_t buckets;  /* a power of two */
    size_t capacity; /* of nexts */
    bool made;
};

void sl_token_map_done(struct sl_token_map *map);

/* Forgets the last text and makes room for one of `count` tokens. 0; -ENOMEM. */
int sl_token_map_expect(struct sl_token_map *map, size_t count);

/* The position of the first token with this hash, or a like one; `count`: there is none. */
size_t sl_token_map_first(struct sl_token_map *map, const struct sl_token *tokens, size_t count,
                          uint64_t hash);

/* The position of the next one behind `at`. */
static inline size_t sl_token_map_next(const struct sl_token_map *map, size_t count, size_t at)
{
    return map->nexts[at] > 0 ? map->nexts[at] - 1 : count;
}
