/* filters/rarity.h - how often does a key turn up in events, lately and roughly?
 *
 * A count-min sketch (Cormode, Muthukrishnan: "An improved data stream summary", 2005) of two rows
 * with conservative update, whose counts are halved now and then, so that old events fade. It only
 * guides where a filter is filed: a wrong answer costs time, never a match. */
#pragma once

#include <stdint.h>

enum { SL_RARITY_COLUMNS = 1 << 16 };

struct sl_rarity {
    uint16_t counts[2][SL_RARITY_COLUMNS];
    uint32_t since_halved; /* sum of weights */
};

/* `key` stands for `weight` times that it was seen: more than 1 if not every event is looked at. */
void sl_rarity_see(struct sl_rarity *rarity, uint64_t key, uint32_t weight);

static inline uint32_t sl_rarity_count(const struct sl_rarity *rarity, uint64_t key)
{
    uint16_t a = rarity->counts[0][key % SL_RARITY_COLUMNS];
    uint16_t b = rarity->counts[1][(key >> 32) % SL_RARITY_COLUMNS];

    return a < b ? a : b;
}
