/* filters/sample.h - samples of ids, and partitions of ids into n equal parts; the same everywhere.
 *
 * They use different halves of stable_hash(id), so they are independent of each other. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/stable_hash.h"

enum {
    SL_SAMPLE_ALL = 1000000,
    SL_PARTITION_MAX = 1024, /* parts */
    SL_PARTITION_BYTES = SL_PARTITION_MAX / 8
};

static inline bool sl_sample_has(uint32_t ppm, uint64_t id)
{
    return ((stable_hash(id) >> 32) * 1000000 >> 32) < ppm;
}

/* The part, from 1 to `parts`, that contains `id`. */
static inline uint32_t sl_partition_of(uint32_t parts, uint64_t id)
{
    return (uint32_t)((stable_hash(id) & UINT32_MAX) * parts >> 32) + 1;
}

/* Parses a percentage above 0 and at most 100 to parts per million. 0; -EINVAL. */
int sl_parse_sample(struct sl_slice text, uint32_t *ret_ppm);
/* Whether `chosen`, with a bit for each of `parts`, contains the part of `id`. */
static inline bool sl_partition_has(const unsigned char *chosen, uint32_t parts, uint64_t id)
{
    uint32_t part = sl_partition_of(parts, id) - 1;

    return chosen[part / 8] & 1u << part % 8;
}

/* Parses k,...,k/n with 1 <= k <= n <= 1024. All parts chosen: *ret_parts is 1. 0; -EINVAL. */
int sl_parse_partition(struct sl_slice text, unsigned char ret_chosen[static SL_PARTITION_BYTES],
                       uint32_t *ret_parts);
