/* filter_index.c - adds and removes subscriptions.
 *
 * Adding allocates everything first and links it afterwards, so that a failure leaves no trace;
 * removing only unlinks. The cost of both depends on the number of the filter's keys, not on the
 * size of the index. */
#include "filters/filter_index.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "filters/filter_index_private.h"

/* The memory that glibc's malloc takes from the heap for `size` bytes. */
static size_t heap_size(size_t size)
{
    return (size + sizeof(size_t) + 15) & ~(size_t)15;
}

/* --- life --------------------------------------------------------------------------------- */

struct sl_filter_index *sl_filter_index_new(uint64_t seed)
{
    struct sl_filter_index *index = mem_zalloc(sizeof(*index));

    if (!index)
        return NULL;
    index->keys.word_key = sl_word_key_new(seed);
    index->first_delete = SL_ENTRY_NONE;
    sl_slab_init(&index->entries, sizeof(struct sl_entry));
    sl_slab_init(&index->subscriptions, sizeof(struct sl_subscription));
    if (sl_postings_init(&index->keys.postings) < 0 ||
        sl_box_grid_init(&index->keys.grid, seed) < 0 ||
        sl_key_table_init(&index->identities) < 0) {
        sl_filter_index_free(index);
        return NULL;
    }
    return index;
}

static void entry_done(struct sl_entry *entry)
{
    if (entry->key_count != 1)
        mem_free(entry->keys.many);
    if (entry->subscription_count > 1)
        mem_free(entry->subscriptions.many);
    sl_filter_unref(entry->filter);
    entry->filter = NULL;
}

void sl_filter_index_free(struct sl_filter_index *index)
{
    if (!index)
        return;
    for (uint32_t i = 0; i < index->entries.used; i++) {
        if (sl_entry_at(index, i)->filter)
            entry_done(sl_entry_at(index, i));
    }
    sl_slab_done(&index->entries);
    sl_slab_done(&index->subscriptions);
    sl_postings_done(&index->keys.postings);
    sl_box_grid_done(&index->keys.grid);
    sl_key_table_done(&index->identities);
    buffer_done(&index->new_keys);
    buffer_done(&index->event_keys);
    buffer_done(&index->cells);
    buffer_done(&index->found);
    buffer_done(&index->seen);
    mem_free(index);
}

/* --- postings ----------------------------------------------------------------------------- */

static struct sl_entry_key *keys_of(struct sl_entry *entry)
{
    return entry->key_count == 1 ? &entry->keys.one : entry->keys.many;
}

static int add_posting(struct sl_filter_index *index, struct sl_entry_key *key,
                       struct sl_posting posting)
{
    uint32_t position;
    int r;

    if (key->is_cell)
        r = sl_box_grid_add(&index->keys.grid, (uint32_t)key->key, posting, &position);
    else
        r = sl_postings_add(&index->keys.postings, key->key, posting, &position);
    if (r == 0)
        key->position = position;
    return r;
}

static void remove_posting(struct sl_filter_index *index, const struct sl_entry_key *key)
{
    struct sl_posting moved;
    bool has_moved;

    if (key->is_cell)
        has_moved =
            sl_box_grid_remove(&index->keys.grid, (uint32_t)key->key, key->position, &moved);
    else
        has_moved = sl_postings_remove(&index->keys.postings, key->key, key->position, &moved);
    if (has_moved)
        keys_of(sl_entry_at(index, moved.entry))[moved.ordinal].position = key->position;
}

static void remove_postings(struct sl_filter_index *index, struct sl_entry *entry, uint32_t count)
{
    while (count-- > 0)
        remove_posting(index, &keys_of(entry)[count]);
}

/* Files the entry under its keys. 0; -ENOMEM: it is filed under none. */
static int add_postings(struct sl_filter_index *index, struct sl_entry *entry, uint32_t number)
{
    for (uint32_t i = 0; i < entry->key_count; i++) {
        int r = add_posting(index, &keys_of(entry)[i], (struct sl_posting){number, i});

        if (r < 0) {
            remove_postings(index, entry, i);
            return r;
        }
    }
    return 0;
}

/* --- entries ------------------------------------------------------------------------------ */

static uint64_t identity_of(const struct sl_filter_index *index, const struct sl_filter *filter)
{
    return sl_word_hash(&index->keys.word_key, filter->key, filter->key_size);
}

/* The entry of an equal filter; SL_ENTRY_NONE: there is none that can be shared. */
static uint32_t find_equal(const struct sl_filter_index *index, const struct sl_filter *filter,
                           uint64_t identity)
{
    const struct sl_key_slot *slot = sl_key_table_find(&index->identities, identity);
    uint32_t number;

    if (!slot)
        return SL_ENTRY_NONE;
    number = (uint32_t)slot->value - 1;
    return sl_slice_equal(sl_filter_key(sl_entry_at(index, number)->filter), sl_filter_key(filter))
               ? number
               : SL_ENTRY_NONE;
}

/* If another filter has the same hash, the entry is not shared. */
static int add_identity(struct sl_filter_index *index, uint64_t identity, uint32_t number)
{
    if (sl_key_table_find(&index->identities, identity))
        return 0;
    return sl_key_table_add(&index->identities, identity, (uint64_t)number + 1);
}

static void remove_identity(struct sl_filter_index *index, uint64_t identity, uint32_t number)
{
    struct sl_key_slot *slot = sl_key_table_find(&index->identities, identity);

    if (slot && slot->value == (uint64_t)number + 1)
        sl_key_table_remove(&index->identities, slot);
}

static bool takes_deletes(const struct sl_entry *entry)
{
    return sl_filter_types(entry->filter) & 1u << SL_EVENT_DELETE;
}

static void link_delete(struct sl_filter_index *index, struct sl_entry *entry, uint32_t number)
{
    if (index->first_delete == SL_ENTRY_NONE) {
        index->first_delete = entry->previous_delete = entry->next_delete = number;
        return;
    }
    entry->next_delete = index->first_delete;
    entry->previous_delete = sl_entry_at(index, index->first_delete)->previous_delete;
    sl_entry_at(index, entry->previous_delete)->next_delete = number;
    sl_entry_at(index, entry->next_delete)->previous_delete = number;
}

static void unlink_delete(struct sl_filter_index *index, struct sl_entry *entry, uint32_t number)
{
    assert(index->first_delete != SL_ENTRY_NONE);
    sl_entry_at(index, entry->previous_delete)->next_delete = entry->next_delete;
    sl_entry_at(index, entry->next_delete)->previous_delete = entry->previous_delete;
    if (index->first_delete == number)
        index->first_delete = entry->next_delete == number ? SL_ENTRY_NONE : entry->next_delete;
}

static size_t entry_heap_bytes(const struct sl_entry *entry)
{
    size_t bytes = heap_size(sizeof(*entry->filter) + entry->filter->key_size);

    if (entry->key_count > 1)
        bytes += heap_size(entry->key_count * sizeof(struct sl_entry_key));
    return bytes;
}

/* A key costs a slot in a segment that has just been split, with its part of the Bloom filter and
 * the directory, and its part of a list that is a quarter full. A cell may be alone in its branch
 * of the grid. */
enum {
    ENTRY_COST = sizeof(struct sl_entry) + sizeof(struct sl_subscription) + 64,
    KEY_COST = sizeof(struct sl_entry_key) + 104,
    CELL_COST = KEY_COST + 6 * 64
};

/* The cost of a filter with this many keys. */
static size_t cost_of(const struct sl_filter *filter, uint32_t keys, uint32_t cells)
{
    return ENTRY_COST + heap_size(sizeof(*filter) + filter->key_size) + (size_t)keys * KEY_COST +
           (size_t)cells * (CELL_COST - KEY_COST);
}

static size_t entry_cost(const struct sl_entry *entry)
{
    const struct sl_entry_key *keys = sl_entry_keys(entry);
    uint32_t cells = 0;

    for (uint32_t i = 0; i < entry->key_count; i++)
        cells += keys[i].is_cell;
    return cost_of(entry->filter, entry->key_count, cells);
}

static struct sl_entry_key entry_key(const struct sl_filter_key *chosen)
{
    return (struct sl_entry_key){
        .key = chosen->key,
        .condition = chosen->condition & ((UINT32_C(1) << 30) - 1),
        .is_cell = chosen->is_cell,
        .is_sure = chosen->is_sure,
    };
}

/* Chooses the keys of a new entry and allocates them. */
static int choose_keys(struct sl_filter_index *index, struct sl_entry *entry)
{
    struct sl_filter_view view = sl_filter_view(entry->filter);
    const struct sl_filter_key *chosen;
    uint32_t count;
    int r;

    buffer_clear(&index->new_keys);
    r = sl_filter_keys(&index->keys, &view, &index->new_keys);
    if (r < 0)
        return r;
    chosen = (const struct sl_filter_key *)(const void *)index->new_keys.data;
    count = (uint32_t)(index->new_keys.size / sizeof(*chosen));
    if (count > 1) {
        entry->keys.many = mem_alloc(count * sizeof(*entry->keys.many));
        if (!entry->keys.many)
            return -ENOMEM;
    }
    entry->key_count = count;
    for (uint32_t i = 0; i < count; i++)
        keys_of(entry)[i] = entry_key(&chosen[i]);
    return 0;
}

static int add_entry(struct sl_filter_index *index, struct sl_filter *filter, uint64_t identity,
                     uint32_t *ret_number)
{
    struct sl_entry *entry;
    uint32_t number;
    int r;

    entry = sl_slab_add(&index->entries, &number);
    if (!entry)
        return -ENOMEM;
    entry->filter = sl_filter_ref(filter);
    entry->refile_after = SL_FIRST_REFILE_AFTER;
    r = choose_keys(index, entry);
    if (r < 0)
        goto fail;
    r = add_postings(index, entry, number);
    if (r < 0)
        goto fail;
    r = add_identity(index, identity, number);
    if (r < 0) {
        remove_postings(index, entry, entry->key_count);
        goto fail;
    }
    if (takes_deletes(entry))
        link_delete(index, entry, number);
    index->heap_bytes += entry_heap_bytes(entry);
    entry->cost = entry_cost(entry);
    index->cost += entry->cost;
    index->keys.verbatim_filters += entry->filter->has_verbatim;
    *ret_number = number;
    return 0;

fail:
    entry_done(entry);
    sl_slab_remove(&index->entries, number);
    return r;
}

static void remove_entry(struct sl_filter_index *index, struct sl_entry *entry, uint32_t number)
{
    assert(index->heap_bytes >= entry_heap_bytes(entry));
    index->heap_bytes -= entry_heap_bytes(entry);
    index->cost -= entry->cost;
    index->keys.verbatim_filters -= entry->filter->has_verbatim;
    if (takes_deletes(entry))
        unlink_delete(index, entry, number);
    remove_identity(index, identity_of(index, entry->filter), number);
    remove_postings(index, entry, entry->key_count);
    entry_done(entry);
    sl_slab_remove(&index->entries, number);
}

/* The best single key for an alternative now. false: it needs several, or out of memory. */
static bool choose_key(struct sl_filter_index *index, const struct sl_entry *entry,
                       uint32_t condition, struct sl_entry_key *ret_key)
{
    struct sl_filter_view view = sl_filter_view(entry->filter);

    buffer_clear(&index->new_keys);
    if (sl_alternative_keys(&index->keys, &view, condition, &index->new_keys) < 0 ||
        index->new_keys.size != sizeof(struct sl_filter_key))
        return false;
    *ret_key = entry_key((const struct sl_filter_key *)(const void *)index->new_keys.data);
    return true;
}

/* A single sufficient key may replace each of several keys. */
void sl_filter_index_refile(struct sl_filter_index *index, struct sl_posting posting)
{
    struct sl_entry *entry = sl_entry_at(index, posting.entry);
    struct sl_entry_key *key = &keys_of(entry)[posting.ordinal], better;

    if (!choose_key(index, entry, key->condition, &better) ||
        sl_key_cost(&index->keys, better.key, better.is_cell) >=
            sl_key_cost(&index->keys, key->key, key->is_cell) / 2)
        return;
    if (add_posting(index, &better, posting) < 0)
        return;
    remove_posting(index, key);
    *key = better;
}

/* --- subscriptions ------------------------------------------------------------------------ */

static uint32_t *subscriptions_of(struct sl_entry *entry)
{
    return entry->subscription_count == 1 ? &entry->subscriptions.one : entry->subscriptions.many;
}

/* The minimum capacity for `count` subscriptions. */
static uint32_t room_for(uint32_t count)
{
    if (count <= 1)
        return 1;
    return count <= 4 ? 4 : UINT32_C(1) << (32 - __builtin_clz(count - 1));
}

static int add_to_entry(struct sl_entry *entry, uint32_t subscription)
{
    uint32_t count = entry->subscription_count;

    if (count == 0) {
        entry->subscriptions.one = subscription;
    } else {
        uint32_t *many = count == 1 ? NULL : entry->subscriptions.many;

        if (count == room_for(count)) {
            many = mem_realloc(many, room_for(count + 1) * sizeof(*many));
            if (!many)
                return -ENOMEM;
        }
        if (count == 1)
            many[0] = entry->subscriptions.one;
        many[count] = subscription;
        entry->subscriptions.many = many;
    }
    entry->subscription_count++;
    return 0;
}

/* The last subscription moves to the position of the removed one. */
static void remove_from_entry(struct sl_filter_index *index, struct sl_entry *entry,
                              uint32_t position)
{
    uint32_t *subscriptions = subscriptions_of(entry);
    uint32_t last = subscriptions[entry->subscription_count - 1];
    struct sl_subscription *moved = sl_slab_at(&index->subscriptions, last);

    assert(position < entry->subscription_count);
    subscriptions[position] = last;
    moved->position = position;
    if (--entry->subscription_count == 1) {
        entry->subscriptions.one = subscriptions[0];
        mem_free(subscriptions);
    }
}

int sl_filter_index_add(struct sl_filter_index *index, struct sl_filter *filter,
                        uint32_t *ret_subscription)
{
    uint64_t identity = identity_of(index, filter);
    uint32_t number = find_equal(index, filter, identity);
    struct sl_subscription *subscription;
    uint32_t subscription_number;
    int r;

    subscription = sl_slab_add(&index->subscriptions, &subscription_number);
    if (!subscription)
        return -ENOMEM;
    r = number == SL_ENTRY_NONE ? add_entry(index, filter, identity, &number) : 0;
    if (r == 0)
        r = add_to_entry(sl_entry_at(index, number), subscription_number);
    if (r < 0) {
        sl_slab_remove(&index->subscriptions, subscription_number);
        return r;
    }
    *subscription =
        (struct sl_subscription){number, sl_entry_at(index, number)->subscription_count - 1};
    *ret_subscription = subscription_number;
    return 0;
}

int sl_filter_index_cost(struct sl_filter_index *index, const struct sl_filter *filter,
                         size_t *ret_bytes)
{
    struct sl_filter_view view = sl_filter_view(filter);
    const struct sl_filter_key *keys;
    uint32_t count, cells = 0;
    int r;

    buffer_clear(&index->new_keys);
    r = sl_filter_keys(&index->keys, &view, &index->new_keys);
    if (r < 0)
        return r;
    keys = (const struct sl_filter_key *)(const void *)index->new_keys.data;
    count = (uint32_t)(index->new_keys.size / sizeof(*keys));
    for (uint32_t i = 0; i < count; i++)
        cells += keys[i].is_cell;
    *ret_bytes = cost_of(filter, count, cells);
    return 0;
}

static const struct sl_entry *entry_of(const struct sl_filter_index *index, uint32_t subscription)
{
    const struct sl_subscription *found = sl_slab_at(&index->subscriptions, subscription);

    return sl_entry_at(index, found->entry);
}

struct sl_filter *sl_filter_index_filter(const struct sl_filter_index *index, uint32_t subscription)
{
    return entry_of(index, subscription)->filter;
}

size_t sl_filter_index_removal_bytes(const struct sl_filter_index *index, uint32_t subscription)
{
    const struct sl_entry *entry = entry_of(index, subscription);

    return entry->subscription_count > 1 ? 0 : entry->cost;
}

void sl_filter_index_remove(struct sl_filter_index *index, uint32_t subscription_number)
{
    const struct sl_subscription *subscription =
        sl_slab_at(&index->subscriptions, subscription_number);
    uint32_t number = subscription->entry;
    struct sl_entry *entry = sl_entry_at(index, number);

    assert(subscriptions_of(entry)[subscription->position] == subscription_number);
    remove_from_entry(index, entry, subscription->position);
    sl_slab_remove(&index->subscriptions, subscription_number);
    if (entry->subscription_count == 0)
        remove_entry(index, entry, number);
}

bool sl_filter_index_is_empty(const struct sl_filter_index *index)
{
    return index->entries.count == 0;
}

void sl_filter_index_stats(const struct sl_filter_index *index,
                           struct sl_filter_index_stats *ret_stats)
{
    *ret_stats = (struct sl_filter_index_stats){
        .subscriptions = index->subscriptions.count,
        .entries = index->entries.count,
        .bytes = sizeof(*index) + index->heap_bytes + sl_slab_bytes(&index->entries) +
                 sl_postings_bytes(&index->keys.postings) + sl_box_grid_bytes(&index->keys.grid) +
                 sl_key_table_bytes(&index->identities),
        .cost = index->cost,
        .candidates = index->candidates,
    };
}
