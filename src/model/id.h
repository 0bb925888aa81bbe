/* src/model/id.h - one 53-bit number that names a thing, says when it was made, and where it lives.
 *
 *     (milliseconds since 2026-01-01T00:00:00Z) * 4096 + shard * 64 + n
 *
 * Ids are minted by the scripts only (src/scripts/common.lua); this is how everybody else reads
 * them. Sorted by number they are sorted by time. In JSON, in Redis and on the command line they
 * are decimal text without leading zeros. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/export.h"
#include "base/slice.h"

#define SL_ID_EPOCH_MS UINT64_C(1767225600000) /* 2026-01-01T00:00:00Z as Unix time */
#define SL_ID_MAX      ((UINT64_C(1) << 53) - 1)

enum {
    SL_ID_PER_MS = 4096,  /* ids of one millisecond, all shards together */
    SL_ID_PER_SHARD = 64, /* ids of one millisecond in one shard */
    SL_SHARDS_MAX = 64,
    SL_ID_TEXT_SIZE = 17, /* 16 digits and a NUL */
};

/* Unix time of the id; up to a few milliseconds ahead of when it was minted, after a burst. */
static inline uint64_t sl_id_time_ms(uint64_t id)
{
    return id / SL_ID_PER_MS + SL_ID_EPOCH_MS;
}

static inline uint32_t sl_id_shard(uint64_t id)
{
    return (uint32_t)(id / SL_ID_PER_SHARD % SL_SHARDS_MAX);
}

/* The id that everything minted at or after `unix_ms` is greater than or equal to; clamped to
 * 0 .. SL_ID_MAX. For "since this time". */
SL_EXPORT uint64_t sl_id_first_at(uint64_t unix_ms);

/* 0; -EINVAL: not the decimal text of a number from 1 to SL_ID_MAX. */
SL_EXPORT int sl_id_parse(struct sl_slice text, uint64_t *ret_id);

/* Writes the decimal text and a NUL; returns `room`. */
SL_EXPORT const char *sl_id_print(uint64_t id, char room[static SL_ID_TEXT_SIZE]);
