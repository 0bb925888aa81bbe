/* filters/rarity.h - estimates how often keys have recently occurred in events.
 *
 * A count-min sketch (Cormode, Muthukrishnan: "An improved data stream summary", 2005) of two rows
 * with conservative update. Its counts are halved from time to time, so that old events fade. The
 * estimates only decide where filters are filed: a wrong one costs time, never a match. */
#pragma once

#include <stdint.h>

enum { SL_RARITY_COLUMNS = 1 << 16 };

struct sl_rarity {
    uint16_t counts[2][SL_RARITY_COLUMNS];
    uint32_t since_halved; /* sum of weights */
};

/* Counts `weight` occurrences of `key`; more than 1 if only some events are counted. */
void sl_rarity_see(struct sl_rarity *rarity, uint64_t key, uint32_t weight);

static inline uint32_t sl_rarity_count(const struct sl_rarity *rarity, uint64_t key)
{
    uint16_t a = rarity->counts[0][key % SL_RARITY_COLUMNS];
    uint16_t b = rarity->counts[1][(key >> 32) % SL_RARITY_COLUMNS];

    return a < b ? a : b;
}
