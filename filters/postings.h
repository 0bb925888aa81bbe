/* filters/postings.h - posting lists: the entries that are filed under each key.
 *
 * A posting names an entry, and one of that entry's keys. The entry remembers the position of its
 * posting, so removal never searches: the last posting of the list moves to the position, and the
 * caller is told. Nearly all keys have one posting, which is stored in the slot itself. */
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

/* *ret_position: its position among the postings of `key`. 0; -ENOMEM: unchanged. */
int sl_postings_add(struct sl_postings *postings, uint64_t key, struct sl_posting posting,
                    uint32_t *ret_position);
/* Removes the posting of `key` at `position`. true: *ret_moved has moved to this position. */
bool sl_postings_remove(struct sl_postings *postings, uint64_t key, uint32_t position,
                        struct sl_posting *ret_moved);

/* The number of postings of `key`. */
uint32_t sl_postings_count(const struct sl_postings *postings, uint64_t key);

size_t sl_postings_bytes(const struct sl_postings *postings);

/* --- reading a slot of the table ---------------------------------------------------------- */

/* Two or more postings of one key. */
struct sl_posting_list {
    uint32_t count, capacity;
    struct sl_posting items[];
};

/* A value is a pointer to a list, or a single posting, marked by the lowest bit. */
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
