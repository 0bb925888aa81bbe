#include "filters/rarity.h"

#include <stddef.h>

/* Keys between two halvings: an every-day word is in one of 20 keys, so its count settles at a
 * tenth of this, below what 16 bits hold. */
enum { HALVE_AFTER = 1 << 19 };

static void halve(struct sl_rarity *rarity)
{
    uint16_t *counts = rarity->counts[0];

    for (size_t i = 0; i < 2 * SL_RARITY_COLUMNS; i++)
        counts[i] /= 2;
    rarity->since_halved = 0;
}

static void count_up(uint16_t *count)
{
    if (*count < UINT16_MAX)
        ++*count;
}

void sl_rarity_see(struct sl_rarity *rarity, uint64_t key)
{
    count_up(&rarity->counts[0][key % SL_RARITY_COLUMNS]);
    count_up(&rarity->counts[1][(key >> 32) % SL_RARITY_COLUMNS]);
    if (++rarity->since_halved == HALVE_AFTER)
        halve(rarity);
}
