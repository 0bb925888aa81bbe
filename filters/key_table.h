/* filters/key_table.h - a table of 64-bit keys and values for millions of keys, which grows in
 * small steps.
 *
 * Extendible hashing (Fagin, Nievergelt, Pippenger, Strong: "Extendible hashing", TODS 1979): the
 * first bits of a key select a segment through a directory. A segment is a small open-addressed
 * table, which is split in two when it is full. So the work of growing is bounded by one segment of
 * 256 slots and, rarely, by doubling the directory (16 bytes for about 150 keys).
 *
 * Most keys that are looked up are not in the table. Therefore each segment has a blocked Bloom
 * filter (Putze, Sanders, Singler: "Cache-, hash- and space-efficient Bloom filters", 2007) with
 * blocks of one word, stored apart from the slots: a miss costs the test of one word, and these
 * words are few enough to stay in the cache. Removal leaves bits behind; a segment rebuilds its
 * filter when many of its keys have been removed.
 *
 * All bits of the keys must be uniformly distributed: use hashes, or numbers mixed by a
 * bijection. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filters/slab.h"

enum { SL_SEGMENT_SLOTS = 256, SL_SEGMENT_BLOOM_WORDS = 64 };

struct sl_key_slot {
    uint64_t key;
    uint64_t value; /* 0: free */
};

struct sl_key_segment {
    uint32_t depth;   /* number of leading bits that all keys of the segment share */
    uint32_t used;    /* occupied slots */
    uint32_t removed; /* removed keys whose bits may still be in the Bloom filter */
    uint32_t number;  /* of its Bloom filter in the slab */
    struct sl_key_slot slots[SL_SEGMENT_SLOTS];
};

struct sl_key_dir {
    const uint64_t *bloom;
    struct sl_key_segment *segment;
};

struct sl_key_table {
    struct sl_key_dir *directory; /* 1 << depth entries; adjacent ones may lead to the same
                                     segment */
    uint32_t depth;               /* at least 1 */
    uint32_t segments;
    struct sl_slab blooms;
};

/* 0; -ENOMEM. */
int sl_key_table_init(struct sl_key_table *table);
/* A zeroed table is allowed. */
void sl_key_table_done(struct sl_key_table *table);

/* The slot of `key`; NULL: not in the table. Valid until the next add or remove. */
struct sl_key_slot *sl_key_table_find(const struct sl_key_table *table, uint64_t key);
/* Adds `value`, which must not be 0, for `key`, which must not be in the table. 0; -ENOMEM:
 * unchanged. */
int sl_key_table_add(struct sl_key_table *table, uint64_t key, uint64_t value);
/* `slot` must come from sl_key_table_find(). */
void sl_key_table_remove(struct sl_key_table *table, struct sl_key_slot *slot);

size_t sl_key_table_bytes(const struct sl_key_table *table);

/* For callers that look up many keys at once: first exclude the missing ones, then prefetch. */

static inline const struct sl_key_dir *sl_key_table_dir(const struct sl_key_table *table,
                                                        uint64_t key)
{
    return &table->directory[key >> (64 - table->depth)];
}

/* The bits of `key` in its word of the Bloom filter. With three bits about one in several hundred
 * tests is a false hit. */
static inline uint64_t sl_key_bloom_bits(uint64_t key)
{
    return (uint64_t)1 << ((key >> 14) & 63) | (uint64_t)1 << ((key >> 20) & 63) |
           (uint64_t)1 << ((key >> 26) & 63);
}

static inline const uint64_t *sl_key_dir_bloom_word(const struct sl_key_dir *dir, uint64_t key)
{
    return &dir->bloom[(key >> 8) % SL_SEGMENT_BLOOM_WORDS];
}

static inline bool sl_key_dir_may_have(const struct sl_key_dir *dir, uint64_t key)
{
    uint64_t bits = sl_key_bloom_bits(key);

    return (*sl_key_dir_bloom_word(dir, key) & bits) == bits;
}

static inline struct sl_key_slot *sl_key_dir_find(const struct sl_key_dir *dir, uint64_t key)
{
    struct sl_key_slot *slots = dir->segment->slots;

    for (uint64_t i = key;; i++) {
        struct sl_key_slot *slot = &slots[i % SL_SEGMENT_SLOTS];

        if (slot->value == 0)
            return NULL;
        if (slot->key == key)
            return slot;
    }
}
