/* filters/filter_index.h - finds the filters that match an event, among up to millions.
 *
 *     words = sl_words_new(seed);
 *     index = sl_filter_index_new(seed);
 *     matches = sl_match_set_new();
 *     sl_filter_index_add(index, filter, &subscription);
 *     sl_words_read(words, &event);
 *     sl_filter_index_match(index, &event, words, matches);
 *
 * The cost of a match depends on the text and the number of matches, not on the number of filters.
 * Adding and removing are possible between any two events and cost as much as the filter has keys;
 * no addition waits for the rehashing of a table. Equal filters share one entry.
 *
 * An index belongs to one thread and keeps a reference to each filter. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/export.h"
#include "filters/event_view.h"
#include "filters/filter.h"
#include "filters/match_set.h"
#include "filters/words.h"

struct sl_filter_index;

struct sl_filter_index_stats {
    uint64_t subscriptions;
    uint64_t entries;    /* distinct filters */
    uint64_t bytes;      /* memory of the index: slots, terms, posting lists, Bloom filter */
    uint64_t cost;       /* of all entries, as computed by sl_filter_index_cost() */
    uint64_t candidates; /* entries evaluated by all matches so far */
};

/* `seed` as in sl_words_new(). NULL: out of memory. */
SL_EXPORT struct sl_filter_index *sl_filter_index_new(uint64_t seed);
SL_EXPORT void sl_filter_index_free(struct sl_filter_index *index);

/* Adds a subscription and assigns it a number. Numbers are small and dense, so that the caller can
 * use them as array indexes; those of removed subscriptions are used again.
 *
 * 0; -ENOMEM: nothing has changed. */
SL_EXPORT int sl_filter_index_add(struct sl_filter_index *index, struct sl_filter *filter,
                                  uint32_t *ret_subscription);
/* An upper estimate of the memory of a subscription to `filter`, in bytes: the filter, its entry,
 * and for each of its keys a posting with its share of half-empty tables. It does not depend on
 * whether an equal filter already exists. 0; -ENOMEM. */
SL_EXPORT int sl_filter_index_cost(struct sl_filter_index *index, const struct sl_filter *filter,
                                   size_t *ret_bytes);
/* The filter of this subscription, which equal filters share. Valid as long as the subscription. */
SL_EXPORT struct sl_filter *sl_filter_index_filter(const struct sl_filter_index *index,
                                                   uint32_t subscription);
/* How many bytes its removal would have to process; 0: other subscriptions share the filter. */
SL_EXPORT size_t sl_filter_index_removal_bytes(const struct sl_filter_index *index,
                                               uint32_t subscription);
/* Cannot fail. `subscription` must come from sl_filter_index_add(). */
SL_EXPORT void sl_filter_index_remove(struct sl_filter_index *index, uint32_t subscription);

/* Whether there are no subscriptions, so that nothing can match. */
SL_EXPORT bool sl_filter_index_is_empty(const struct sl_filter_index *index);

/* Fills `matches` with the subscriptions that match. 0; -ENOMEM: `matches` is empty. */
SL_EXPORT int sl_filter_index_match(struct sl_filter_index *index,
                                    const struct sl_event_view *event, const struct sl_words *words,
                                    struct sl_match_set *matches);

SL_EXPORT void sl_filter_index_stats(const struct sl_filter_index *index,
                                     struct sl_filter_index_stats *ret_stats);
