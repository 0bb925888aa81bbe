#include "filters/rarity.h"

#include <stddef.h>

/* The weight between two halvings: some thousand events. An everyday word is one key in twenty, so
 * its count fits in 16 bits. */
enum { HALVE_AFTER = 1 << 20 };

static void halve(struct sl_rarity *rarity)
{
    uint16_t *counts = rarity->counts[0];

    for (size_t i = 0; i < 2 * SL_RARITY_COLUMNS; i++)
        counts[i] /= 2;
    rarity->since_halved = 0;
}

static void raise_to(uint16_t *count, uint32_t least)
{
    if (*count < least)
        *count = least < UINT16_MAX ? (uint16_t)least : UINT16_MAX;
}

/* Counts grow no more than the key requires: one that is shared with a more frequent key stays
 * unchanged. */
void sl_rarity_see(struct sl_rarity *rarity, uint64_t key, uint32_t weight)
{
    uint16_t *a = &rarity->counts[0][key % SL_RARITY_COLUMNS];
    uint16_t *b = &rarity->counts[1][(key >> 32) % SL_RARITY_COLUMNS];
    uint32_t count = (*a < *b ? *a : *b) + weight;

    raise_to(a, count);
    raise_to(b, count);
    rarity->since_halved += weight;
    if (rarity->since_halved >= HALVE_AFTER)
        halve(rarity);
}
