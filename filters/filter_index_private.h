/* filters/filter_index_private.h - entries, and who subscribes to them; internal.
 *
 * An entry is one distinct filter, with the subscriptions that share it. Its keys (index_keys.h)
 * lead to it from the events that it may match. */
#pragma once

#include "filters/filter_index.h"
#include "filters/index_keys.h"
#include "filters/slab.h"

#define SL_ENTRY_NONE UINT32_MAX

/* Filing anew costs about as much as looking at so many entries in vain. */
enum { SL_FIRST_PATIENCE = 4 };

/* One posting of an entry: where it stands, and what it stands for. */
struct sl_entry_key {
    uint64_t key;            /* or a cell of the grid */
    uint32_t position;       /* among the postings of the key */
    uint32_t condition : 30; /* offset in the filter's condition: the alternative */
    uint32_t is_cell : 1;
    uint32_t is_sure : 1; /* see struct sl_filter_key */
};

struct sl_entry {
    uint32_t key_count;
    uint32_t matched_in;      /* the last match that it was part of, as counted by `epoch` */
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
    uint16_t misses;   /* times it was looked at in vain since it was last filed anew */
    uint16_t patience; /* misses until that is tried again */
    uint32_t previous_delete, next_delete; /* a ring without end of all that take deletes */
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
    uint32_t first_delete; /* of the entries that take deletes */
    uint32_t epoch;        /* counts matches */
    uint64_t candidates;
    size_t heap_bytes;               /* filters, and the arrays of entries */
    size_t cost;                     /* of all entries */
    struct buffer new_keys;          /* scratch of add and refile: struct sl_filter_key */
    struct buffer event_keys, cells; /* scratch of match: uint64_t */
    struct buffer found, seen;       /* scratch of match, see there */
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

/* Files the alternative that `posting` stands for under a key that is seen less often, if there is
 * one now. For an entry that is looked at in vain. Never fails: then all stays as it is. */
void sl_filter_index_refile(struct sl_filter_index *index, struct sl_posting posting);
