/* filter_match.c - finds the subscriptions that match an event.
 *
 * The keys of the event lead to postings, a posting to an entry and to the alternative of its
 * filter that the key represents; only that alternative is evaluated. With a million filters nearly
 * all time is spent waiting for memory. Therefore the keys are processed in stages, each of which
 * prefetches what the next one reads: Bloom filters, which exclude nearly all keys, then slots and
 * posting lists, then entries, then filters.
 *
 * An entry that is repeatedly evaluated in vain is filed under another key, like a clause of a SAT
 * solver that moves its watch: most filters are added before it is known which keys are rare.
 *
 * A deletion without the deleted post goes to everyone who takes deletions. Their entries are
 * linked, so that no others are visited. */
#include "filters/filter_index.h"

#include <errno.h>
#include <string.h>

#include "filters/filter_index_private.h"
#include "filters/match_set_private.h"

/* One of this many events is counted for the rarity of all its keys. */
enum { RARITY_EVERY = 16 };

/* Candidates in the stage between entry and filter. */
enum { BATCH = 64 };

/* Entries refiled after one event, to limit the cost of an event. */
enum { REFILE_MAX = 4 };

struct match {
    struct sl_filter_index *index;
    const struct sl_event_view *event;
    const struct sl_words *words;
    struct sl_match_set *matches;
    struct sl_posting batch[BATCH];
    size_t batch_size;
    struct sl_posting misfiled[REFILE_MAX];
    size_t misfiled_count;
    int r; /* 0; -ENOMEM: `matches` cannot grow */
};

static void accept(struct match *match, struct sl_entry *entry)
{
    entry->matched_in = match->index->epoch;
    if (match->r == 0)
        match->r = sl_match_set_add(match->matches, sl_entry_subscriptions(entry),
                                    entry->subscription_count);
}

/* Each miss makes the next attempt to refile four times as late. */
static void miss(struct match *match, struct sl_entry *entry, struct sl_posting posting)
{
    if (++entry->misses < entry->refile_after || match->misfiled_count == REFILE_MAX)
        return;
    match->misfiled[match->misfiled_count++] = posting;
    entry->misses = 0;
    entry->refile_after =
        entry->refile_after < UINT16_MAX / 4 ? entry->refile_after * 4 : UINT16_MAX;
}

static void judge(struct match *match, struct sl_posting posting)
{
    struct sl_entry *entry = sl_entry_at(match->index, posting.entry);
    const struct sl_entry_key *key;
    struct sl_filter_view view;

    if (entry->matched_in == match->index->epoch)
        return;
    match->index->candidates++;
    view = sl_filter_view(entry->filter);
    key = &sl_entry_keys(entry)[posting.ordinal];
    if (!sl_filter_admits(&view, match->event))
        return;
    if (key->is_sure || sl_condition_holds(sl_slice_from(view.condition, key->condition),
                                           match->event, match->words))
        accept(match, entry);
    else
        miss(match, entry, posting);
}

static void judge_batch(struct match *match)
{
    for (size_t i = 0; i < match->batch_size; i++) {
        const struct sl_entry *entry = sl_entry_at(match->index, match->batch[i].entry);

        __builtin_prefetch(entry->filter);
        if (entry->key_count > 1)
            __builtin_prefetch(&entry->keys.many[match->batch[i].ordinal]);
    }
    for (size_t i = 0; i < match->batch_size; i++)
        judge(match, match->batch[i]);
    match->batch_size = 0;
}

static void consider(struct match *match, struct sl_posting posting)
{
    __builtin_prefetch(sl_entry_at(match->index, posting.entry));
    match->batch[match->batch_size++] = posting;
    if (match->batch_size == BATCH)
        judge_batch(match);
}

/* A key that passed the Bloom filter. */
struct hit {
    const struct sl_key_dir *dir;
    uint64_t key;
};

/* Puts those of `keys` that pass the Bloom filters into index->found. */
static int pass_blooms(struct sl_filter_index *index, const struct sl_key_table *table,
                       const struct buffer *keys)
{
    const uint64_t *key = (const uint64_t *)(const void *)keys->data;
    const struct sl_key_table local = *table; /* a copy, which the writes below cannot alias */
    size_t count = keys->size / sizeof(*key), kept = 0;
    struct hit *hits;

    buffer_clear(&index->found);
    hits = (struct hit *)(void *)buffer_reserve(&index->found, count * sizeof(*hits));
    if (!hits)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        hits[i] = (struct hit){sl_key_table_dir(&local, key[i]), key[i]};
        __builtin_prefetch(sl_key_dir_bloom_word(hits[i].dir, key[i]));
    }
    for (size_t i = 0; i < count; i++) {
        struct hit hit = hits[i];

        if (__builtin_expect(!sl_key_dir_may_have(hit.dir, hit.key), 1))
            continue;
        __builtin_prefetch(&hit.dir->segment->slots[hit.key % SL_SEGMENT_SLOTS]);
        hits[kept++] = hit;
    }
    index->found.size = kept * sizeof(*hits);
    return 0;
}

/* Removes duplicates from index->found, with a small hash set of positions. */
static int drop_repetitions(struct sl_filter_index *index)
{
    struct hit *hits = (struct hit *)(void *)index->found.data;
    size_t count = index->found.size / sizeof(*hits), kept = 0, capacity = 16;
    uint32_t *seen;

    while (capacity < 2 * count)
        capacity *= 2;
    buffer_clear(&index->seen);
    seen = (uint32_t *)(void *)buffer_reserve(&index->seen, capacity * sizeof(*seen));
    if (!seen)
        return -ENOMEM;
    memset(seen, 0, capacity * sizeof(*seen));
    for (size_t i = 0; i < count; i++) {
        size_t at = hits[i].key % capacity;

        while (seen[at] != 0 && hits[seen[at] - 1].key != hits[i].key)
            at = (at + 1) % capacity;
        if (seen[at] != 0)
            continue;
        hits[kept++] = hits[i];
        seen[at] = (uint32_t)kept;
    }
    index->found.size = kept * sizeof(*hits);
    return 0;
}

static void consider_value(struct match *match, uint64_t value)
{
    const struct sl_posting_list *list;

    if (sl_posting_value_is_single(value)) {
        consider(match, sl_posting_single(value));
        return;
    }
    list = sl_posting_list(value);
    for (uint32_t i = 0; i < list->count; i++)
        consider(match, list->items[i]);
}

/* Evaluates all entries that are filed in `table` under one of `keys`. */
static int look_up(struct match *match, const struct sl_key_table *table, const struct buffer *keys)
{
    struct sl_filter_index *index = match->index;
    const struct hit *hits;
    size_t count;
    uint64_t *values;
    int r;

    r = pass_blooms(index, table, keys);
    if (r == 0)
        r = drop_repetitions(index);
    if (r < 0)
        return r;
    hits = (const struct hit *)(const void *)index->found.data;
    count = index->found.size / sizeof(*hits);

    /* The set is no longer needed; its memory is large enough for the values. */
    values = (uint64_t *)(void *)index->seen.data;
    for (size_t i = 0; i < count; i++) {
        const struct sl_key_slot *slot = sl_key_dir_find(hits[i].dir, hits[i].key);

        values[i] = slot ? slot->value : 0;
        if (slot)
            sl_rarity_see(&index->keys.rarity, hits[i].key, 1);
        if (slot && !sl_posting_value_is_single(slot->value))
            __builtin_prefetch(sl_posting_list(slot->value));
    }
    for (size_t i = 0; i < count; i++) {
        if (values[i] != 0)
            consider_value(match, values[i]);
    }
    return 0;
}

static void match_bare_delete(struct match *match)
{
    const struct sl_filter_index *index = match->index;
    uint32_t number = index->first_delete;

    if (number == SL_ENTRY_NONE)
        return;
    do {
        struct sl_entry *entry = sl_entry_at(index, number);
        struct sl_filter_view view = sl_filter_view(entry->filter);

        match->index->candidates++;
        if (sl_filter_admits(&view, match->event))
            accept(match, entry);
        number = entry->next_delete;
    } while (number != index->first_delete);
}

/* Keys with filters are counted whenever they are found. Other keys are counted for one event of
 * RARITY_EVERY, with that weight. */
static void see_keys(struct sl_filter_index *index, const struct sl_key_table *table,
                     const struct buffer *keys)
{
    const uint64_t *key = (const uint64_t *)(const void *)keys->data;

    for (size_t i = 0; i < keys->size / sizeof(*key); i++) {
        if (!sl_key_dir_may_have(sl_key_table_dir(table, key[i]), key[i]))
            sl_rarity_see(&index->keys.rarity, key[i], RARITY_EVERY);
    }
}

static int match_by_keys(struct match *match)
{
    struct sl_filter_index *index = match->index;
    int r = 0;

    buffer_clear(&index->event_keys);
    buffer_clear(&index->cells);
    sl_event_keys(&index->keys, match->event, match->words, &index->event_keys, &index->cells);
    if (index->event_keys.failed || index->cells.failed)
        return -ENOMEM;
    if (index->epoch % RARITY_EVERY == 0) {
        see_keys(index, &index->keys.postings.table, &index->event_keys);
        see_keys(index, &index->keys.grid.cells.table, &index->cells);
    }
    r = look_up(match, &index->keys.postings.table, &index->event_keys);
    if (r == 0 && index->cells.size > 0)
        r = look_up(match, &index->keys.grid.cells.table, &index->cells);
    judge_batch(match);
    for (size_t i = 0; i < match->misfiled_count; i++)
        sl_filter_index_refile(index, match->misfiled[i]);
    return r;
}

/* Assigns a number to the match. When the numbers overflow, the old ones are removed from the
 * entries. */
static void begin_epoch(struct sl_filter_index *index)
{
    if (++index->epoch != 0)
        return;
    for (uint32_t i = 0; i < index->entries.used; i++)
        sl_entry_at(index, i)->matched_in = 0;
    index->epoch = 1;
}

int sl_filter_index_match(struct sl_filter_index *index, const struct sl_event_view *event,
                          const struct sl_words *words, struct sl_match_set *matches)
{
    struct match match = {.index = index, .event = event, .words = words, .matches = matches};
    int r = 0;

    matches->count = 0;
    if (event->restricted || sl_filter_index_is_empty(index))
        return 0;
    begin_epoch(index);
    if (sl_event_is_bare(event))
        match_bare_delete(&match);
    else
        r = match_by_keys(&match);
    if (r == 0)
        r = match.r;
    if (r < 0)
        matches->count = 0;
    return r;
}
