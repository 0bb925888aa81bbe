/* filters/filter_index_private.h - the entries of the index and their subscriptions; internal.
 *
 * An entry is one distinct filter with the subscriptions that share it. It is found by its keys
 * (index_keys.h), which events that it may match have, too. */
#pragma once

#include "filters/filter_index.h"
#include "filters/index_keys.h"
#include "filters/slab.h"

#define SL_ENTRY_NONE UINT32_MAX

/* Refiling an entry costs about as much as evaluating this many entries in vain. */
enum { SL_FIRST_REFILE_AFTER = 4 };

/* One posting of an entry: its position, and the alternative that it represents. */
struct sl_entry_key {
    uint64_t key;            /* or a cell of the grid */
    uint32_t position;       /* among the postings of the key */
    uint32_t condition : 30; /* offset of the alternative in the filter's condition */
    uint32_t is_cell : 1;
    uint32_t is_sure : 1; /* see struct sl_filter_key */
};

struct sl_entry {
    uint32_t key_count;
    uint32_t matched_in;      /* the `epoch` of the last match in which it was found */
    struct sl_filter *filter; /* NULL: the entry has been removed */
    size_t cost;
    union {
        struct sl_entry_key one; /* if key_count is 1 */
        struct sl_entry_key *many;
    } keys;
    union {
        uint32_t one; /* if subscription_count is 1 */
        uint32_t *many;
    } subscriptions;
    uint32_t subscription_count;
    uint16_t misses;                       /* evaluations without a match since it was last filed */
    uint16_t refile_after;                 /* misses until the next attempt to refile it */
    uint32_t previous_delete, next_delete; /* a ring of all entries that take deletions */
};

struct sl_subscription {
    uint32_t entry;
    uint32_t position; /* among the subscriptions of the entry */
};

struct sl_filter_index {
    struct sl_index_keys keys;
    struct sl_key_table identities; /* hash of a filter's key -> entry + 1 */
    struct sl_slab entries;
    struct sl_slab subscriptions;
    uint32_t first_delete; /* an entry of the ring of those that take deletions */
    uint32_t epoch;        /* number of the current match */
    uint64_t candidates;
    size_t heap_bytes;               /* of filters, and of the arrays of entries */
    size_t cost;                     /* of all entries */
    struct buffer new_keys;          /* scratch of add and refile: struct sl_filter_key */
    struct buffer event_keys, cells; /* scratch of match: uint64_t */
    struct buffer found, seen;       /* scratch of match, see filter_match.c */
};

static inline struct sl_entry *sl_entry_at(const struct sl_filter_index *index, uint32_t number)
{
    return sl_slab_at(&index->entries, number);
}

static inline const struct sl_entry_key *sl_entry_keys(const struct sl_entry *entry)
{
    return entry->key_count == 1 ? &entry->keys.one : entry->keys.many;
}

static inline const uint32_t *sl_entry_subscriptions(const struct sl_entry *entry)
{
    return entry->subscription_count == 1 ? &entry->subscriptions.one : entry->subscriptions.many;
}

/* Files the alternative of `posting` under a rarer key, if there is one now. For an entry that was
 * evaluated in vain. If it fails, nothing changes. */
void sl_filter_index_refile(struct sl_filter_index *index, struct sl_posting posting);
