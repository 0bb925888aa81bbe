/* src/model/id.h - ids: 53-bit numbers that contain the time and the shard of their creation.
 *
 *     (milliseconds since 2026-01-01T00:00:00Z) * 4096 + shard * 64 + n
 *
 * Only the scripts mint ids (src/scripts/common.lua); the functions here read them. Ids sorted by
 * number are sorted by time. In JSON, in Redis and on the command line an id is decimal text
 * without leading zeros. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/export.h"
#include "base/slice.h"

#define SL_ID_EPOCH_MS UINT64_C(1767225600000) /* 2026-01-01T00:00:00Z as Unix time */
#define SL_ID_MAX      ((UINT64_C(1) << 53) - 1)

enum {
    SL_ID_PER_MS = 4096,  /* ids in one millisecond, all shards together */
    SL_ID_PER_SHARD = 64, /* ids in one millisecond in one shard */
    SL_SHARDS_MAX = 64,
    SL_ID_TEXT_SIZE = 17, /* 16 digits and a NUL */
};

/* The Unix time of the id. After a burst it can be a few milliseconds later than the time at which
 * the id was minted. */
static inline uint64_t sl_id_time_ms(uint64_t id)
{
    return id / SL_ID_PER_MS + SL_ID_EPOCH_MS;
}

static inline uint32_t sl_id_shard(uint64_t id)
{
    return (uint32_t)(id / SL_ID_PER_SHARD % SL_SHARDS_MAX);
}

/* The lowest id that can be minted at `unix_ms`, clamped to 0 .. SL_ID_MAX. */
SL_EXPORT uint64_t sl_id_first_at(uint64_t unix_ms);

/* 0; -EINVAL: not the decimal text of a number from 1 to SL_ID_MAX. */
SL_EXPORT int sl_id_parse(struct sl_slice text, uint64_t *ret_id);

/* Writes the decimal text and a NUL. Returns `room`. */
SL_EXPORT const char *sl_id_print(uint64_t id, char room[static SL_ID_TEXT_SIZE]);
