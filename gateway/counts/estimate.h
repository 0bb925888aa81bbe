/* gateway/counts/estimate.h - how much would a filter bring, judged by some of the events that have
 * passed?
 *
 * The time that is judged is cut into slots, and of each some events are looked at; whoever draws
 * them says how long the slot was and how many they were of. The filter and its pieces (phrases,
 * users, boxes, alternatives or items of the rule) are asked of each event at once, by an index of
 * their own.
 *
 * The rate is the mean of the slots' rates. The interval is one of prediction, for what the next
 * ten minutes bring, with 95 %: its variance has three parts.
 *
 * - What the slots leave uncertain: their variance by their number. That is larger than Poisson's
 *   where they differ by more than chance (overdispersion), and where neighbours are alike it is
 *   more by (1 + r) / (1 - r), r being their correlation (Bartlett, "Some theoretical aspects of
 *   autocorrelated time series", 1946).
 * - The chance of the next ten minutes, Poisson's.
 * - That they may be a busy time, or a quiet one: the part of the slots' variance that is not
 *   Poisson's, by how many slots, that do not depend on each other, ten minutes have.
 *
 * A Poisson count whose rate is a gamma variable is negative binomial, which is what counts of
 * words and users are (Mosteller, Wallace: "Inference and disputed authorship", 1964; McCullagh,
 * Nelder: "Generalized linear models", 1989, 6.2.3). The quantiles are those of a gamma
 * distribution of that mean and variance (Wilson, Hilferty: "The distribution of chi-square",
 * 1931), widened as Student's t is for so many slots. Half an event is added (Jeffreys), so that
 * nothing seen is not nothing for sure. Belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "filters/filter.h"
#include "gateway/intake/event.h"

enum {
    ESTIMATE_SLOTS = 16,
    ESTIMATE_SLOTS_MAX = 64, /* where there are so many shards */
    ESTIMATE_EVENTS = 2000,  /* looked at, of all slots */
    ESTIMATE_EXAMPLES = 5,
    ESTIMATE_AHEAD_S = 600
};

struct estimate;

/* `text` was accepted with `limits`, and its slices stay until the estimate is freed. `seed`:
 * secret, as for sl_words_new(). NULL: out of memory. */
struct estimate *estimate_new(const struct sl_filter_text *text,
                              const struct sl_filter_limits *limits, struct sl_filter *filter,
                              uint64_t seed);
void estimate_free(struct estimate *estimate); /* NULL is fine */

/* Looks at an event of the slot, below ESTIMATE_SLOTS_MAX, in any order. *ret_is_match: the filter
 * wants it. 0; -ENOMEM. */
int estimate_look(struct estimate *estimate, unsigned slot, const struct event *event,
                  bool *ret_is_match);
/* The same, but the event is of no slot, and counts for nothing. */
int estimate_wants(struct estimate *estimate, const struct event *event, bool *ret_is_match);
/* Of so many seconds of the slot, this share of the events of all shards was looked at. Slots with
 * numbers next to each other are neighbours in time; those of which nothing is said are none. */
void estimate_set_slot(struct estimate *estimate, unsigned slot, double seconds, double share);
/* The slots reach over so many seconds; said last. */
void estimate_set_span(struct estimate *estimate, double seconds);
/* An example, the newest first; takes a reference. true: there are enough. */
bool estimate_keep_example(struct estimate *estimate, struct event *event);

struct estimate_rate {
    double per_second, low, high; /* events; low and high: of the mean of the next ten minutes */
    double bytes_per_second;      /* JSON of the events */
};
struct estimate_rate estimate_rate(const struct estimate *estimate);

/* The answer, {"events":..,...}; `warnings` NULL: none. */
void estimate_print(const struct estimate *estimate, const struct sl_filter_warnings *warnings,
                    struct buffer *json);
