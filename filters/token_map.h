/* filters/token_map.h - finds the positions of a word in a text; internal.
 *
 * The map is built from the tokens of a text at the first lookup: most texts are never searched,
 * because no filter is a candidate; others are searched hundreds of times. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_token;

struct sl_token_map {
    uint32_t *heads; /* hash -> position + 1 of the first token in this bucket; 0: none */
    uint32_t *nexts; /* position -> position + 1 of the next token in the bucket; 0: none */
    size_t buckets;  /* a power of two */
    size_t capacity; /* of nexts */
    bool made;
};

void sl_token_map_done(struct sl_token_map *map);

/* Discards the last text and makes room for one of `count` tokens. 0; -ENOMEM. */
int sl_token_map_expect(struct sl_token_map *map, size_t count);

/* The position of the first token in the bucket of this hash, whose hash may differ; `count`: there
 * is none. */
size_t sl_token_map_first(struct sl_token_map *map, const struct sl_token *tokens, size_t count,
                          uint64_t hash);

/* The position of the next token after `at` in the same bucket. */
static inline size_t sl_token_map_next(const struct sl_token_map *map, size_t count, size_t at)
{
    return map->nexts[at] > 0 ? map->nexts[at] - 1 : count;
}
