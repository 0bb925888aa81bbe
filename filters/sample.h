/* filters/sample.h - samples of ids, and partitions of ids into n equal parts; the same everywhere.
 *
 * They use different halves of stable_hash(id), so they are independent of each other. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/stable_hash.h"

enum { SL_SAMPLE_ALL = 1000000, SL_PARTITION_MAX = 1024 };

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
/* Parses k/n with 1 <= k <= n <= 1024. 0; -EINVAL. */
int sl_parse_partition(struct sl_slice text, uint32_t *ret_part, uint32_t *ret_parts);
