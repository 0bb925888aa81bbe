/* filters/key_table.h - 64-bit key -> 64-bit value, for millions of keys, growing without a stop.
 *
 * Extendible hashing (Fagin, Nievergelt, Pippenger, Strong: "Extendible hashing", TODS 1979): the
 * first bits of a key choose a segment through a directory; a segment is a small open-addressed
 * table that splits in two when it is full. So the work of growing is bounded by one segment of
 * 256 slots and, rarely, by doubling the directory (16 bytes for some 150 keys).
 *
 * Most keys that are asked for are not there. Each segment has a blocked Bloom filter (Putze,
 * Sanders, Singler: "Cache-, hash- and space-efficient Bloom filters", 2007) with blocks of one
 * word, kept apart from the slots: a miss costs one test of one word, and those words are few
 * enough to stay in the cache. Removing leaves bits behind; a segment makes its filter anew when
 * many of its keys have gone.
 *
 * Keys must be equally spread in all their bits: hashes, or numbers mixed one to one. */
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
    uint32_t depth;   /* bits of the key that all of its keys share */
    uint32_t used;    /* slots */
    uint32_t removed; /* keys that may still have their bits in the Bloom filter */
    uint32_t number;  /* of its Bloom filter in the slab */
    struct sl_key_slot slots[SL_SEGMENT_SLOTS];
};

struct sl_key_dir {
    const uint64_t *bloom;
    struct sl_key_segment *segment;
};

struct sl_key_table {
    struct sl_key_dir *directory; /* 1 << depth; neighbours may lead to the same segment */
    uint32_t depth;               /* at least 1 */
    uint32_t segments;
    struct sl_slab blooms;
};

/* 0; -ENOMEM. */
int sl_key_table_init(struct sl_key_table *table);
/* Fine on a table that is all zero. */
void sl_key_table_done(struct sl_key_table *table);

/* The slot of `key`; NULL: not there. Good until the next add or remove. */
struct sl_key_slot *sl_key_table_find(const struct sl_key_table *table, uint64_t key);
/* Files `value`, which is not 0, under `key`, which is not there yet. 0; -ENOMEM: unchanged. */
int sl_key_table_add(struct sl_key_table *table, uint64_t key, uint64_t value);
/* `slot` came from sl_key_table_find(). */
void sl_key_table_remove(struct sl_key_table *table, struct sl_key_slot *slot);

size_t sl_key_table_bytes(const struct sl_key_table *table);

/* For those who ask for many keys at once: first rule out what is not there, then prefetch. */

static inline const struct sl_key_dir *sl_key_table_dir(const struct sl_key_table *table,
                                                        uint64_t key)
{
    return &table->directory[key >> (64 - table->depth)];
}

/* The bits that `key` sets in its word of the Bloom filter: three are enough for one false hit in
 * some hundreds. */
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
