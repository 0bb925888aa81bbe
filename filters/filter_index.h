/* filters/filter_index.h - which of a million standing filters does this event match?
 *
 *     words = sl_words_new(seed);  index = sl_filter_index_new(seed);  matches =
 * sl_match_set_new(); sl_filter_index_add(index, filter, &subscription); sl_words_read(words,
 * &event); sl_filter_index_match(index, &event, words, matches);
 *
 * The cost of a match follows the text and the number of matches, not the number of filters.
 * Adding and removing happen in place, between any two events, and cost as much as the filter has
 * keys; no addition waits for a table to be rehashed. Equal filters share one entry.
 * An index belongs to one thread, keeps a reference to each filter, and never calls back out. */
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
    uint64_t cost;       /* of all entries, as sl_filter_index_cost() tells it */
    uint64_t candidates; /* entries looked at by all matches so far */
};

/* `seed` as in sl_words_new(). NULL: out of memory. */
SL_EXPORT struct sl_filter_index *sl_filter_index_new(uint64_t seed);
SL_EXPORT void sl_filter_index_free(struct sl_filter_index *index);

/* Adds one subscription and gives it a number: small and dense, so that the caller can keep what
 * belongs to it in an array; numbers of removed subscriptions are used again.
 * 0; -ENOMEM (nothing has changed). */
SL_EXPORT int sl_filter_index_add(struct sl_filter_index *index, struct sl_filter *filter,
                                  uint32_t *ret_subscription);
/* What a subscription to `filter` costs of memory, in bytes, at least as much as the truth: the
 * filter, its entry, and for each of its keys a posting with its share of tables that are half
 * empty. Whether an equal filter is there already makes no difference. 0; -ENOMEM. */
SL_EXPORT int sl_filter_index_cost(struct sl_filter_index *index, const struct sl_filter *filter,
                                   size_t *ret_bytes);
/* The filter that an equal one shares with this subscription, as long as it is there. */
SL_EXPORT struct sl_filter *sl_filter_index_filter(const struct sl_filter_index *index,
                                                   uint32_t subscription);
/* Bytes of what its removal has to take apart; 0: others subscribe to an equal filter. */
SL_EXPORT size_t sl_filter_index_removal_bytes(const struct sl_filter_index *index,
                                               uint32_t subscription);
/* Cannot fail. `subscription` came from sl_filter_index_add(). */
SL_EXPORT void sl_filter_index_remove(struct sl_filter_index *index, uint32_t subscription);

/* Nobody subscribes: nothing matches, whatever the words. */
SL_EXPORT bool sl_filter_index_is_empty(const struct sl_filter_index *index);

/* Fills `matches` with the subscriptions that match. 0; -ENOMEM: `matches` is empty. */
SL_EXPORT int sl_filter_index_match(struct sl_filter_index *index,
                                    const struct sl_event_view *event, const struct sl_words *words,
                                    struct sl_match_set *matches);

SL_EXPORT void sl_filter_index_stats(const struct sl_filter_index *index,
                                     struct sl_filter_index_stats *ret_stats);
