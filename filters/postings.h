/* filters/postings.h - key -> the entries that are filed under it.
 *
 * A posting says which entry, and which of that entry's keys it is. The entry remembers where its
 * posting stands, so that taking one out never searches: the last one of the list takes the place,
 * and its owner is told. Nearly all keys have one posting; it lives in the slot itself. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filters/key_table.h"

struct sl_posting {
    uint32_t entry;
    uint32_t ordinal; /* below 2^31 */
};

struct sl_postings {
    struct sl_key_table table;
    size_t list_bytes;
};

int sl_postings_init(struct sl_postings *postings);
void sl_postings_done(struct sl_postings *postings);

/* *ret_position: where it stands among the postings of `key`. 0; -ENOMEM: unchanged. */
int sl_postings_add(struct sl_postings *postings, uint64_t key, struct sl_posting posting,
                    uint32_t *ret_position);
/* Removes the posting of `key` at `position`. true: *ret_moved now stands there. */
bool sl_postings_remove(struct sl_postings *postings, uint64_t key, uint32_t position,
                        struct sl_posting *ret_moved);

/* How many are filed under `key`. */
uint32_t sl_postings_count(const struct sl_postings *postings, uint64_t key);

size_t sl_postings_bytes(const struct sl_postings *postings);

/* --- reading a slot of the table ---------------------------------------------------------- */

/* Two or more postings of one key. */
struct sl_posting_list {
    uint32_t count, capacity;
    struct sl_posting items[];
};

/* A value is a pointer to a list, or one posting, marked by its lowest bit. */
static inline bool sl_posting_value_is_single(uint64_t value)
{
    return value & 1;
}

static inline struct sl_posting sl_posting_single(uint64_t value)
{
    return (struct sl_posting){(uint32_t)(value >> 32), (uint32_t)value >> 1};
}

static inline struct sl_posting_list *sl_posting_list(uint64_t value)
{
    return (struct sl_posting_list *)(uintptr_t)value;
}
