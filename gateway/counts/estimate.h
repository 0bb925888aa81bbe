/* gateway/counts/estimate.h - estimates how many events a filter will match, from a sample of the
 * past.
 *
 * The past is divided into slots, and some events of each are sampled; the caller says how long
 * each slot was and which share of its events was sampled. The filter and its pieces (phrases,
 * users, boxes, alternatives or items of the rule) are matched with each event at once, using an
 * index of their own.
 *
 * The rate is the mean of the slots' rates. The interval is a 95 % prediction interval for the next
 * ten minutes. Its variance has three parts:
 *
 * - The uncertainty of the mean: the variance of the slots divided by their number. It is larger
 * than Poisson's if the slots differ by more than chance (overdispersion); if neighbouring slots
 * are correlated by r, it is multiplied by (1 + r) / (1 - r) (Bartlett, "Some theoretical aspects
 * of autocorrelated time series", 1946).
 *
 * - The Poisson variance of the next ten minutes.
 *
 * - The variation between busy and quiet times: the part of the slots' variance that is not
 * Poisson's, divided by the number of independent slots in ten minutes.
 *
 * A Poisson count whose rate is a gamma variable is negative binomial, and counts of words and
 * users are (Mosteller, Wallace: "Inference and disputed authorship", 1964; McCullagh, Nelder:
 * "Generalized linear models", 1989, 6.2.3). The quantiles are those of a gamma distribution with
 * this mean and variance (Wilson, Hilferty: "The distribution of chi-square", 1931), widened as in
 * Student's t distribution for the number of slots. Half an event is added (Jeffreys), so that the
 * estimate for a filter without matches is not exactly zero. Belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "filters/filter.h"
#include "gateway/intake/event.h"

enum {
    ESTIMATE_SLOTS = 16,
    ESTIMATE_SLOTS_MAX = 64, /* if there are as many shards */
    ESTIMATE_EVENTS = 2000,  /* sampled in total */
    ESTIMATE_EXAMPLES = 5,
    ESTIMATE_AHEAD_S = 600
};

struct estimate;

/* `text` must have been accepted with `limits`, and its slices must remain valid until the estimate
 * is freed. `seed`: a secret, as for sl_words_new(). NULL: out of memory. */
struct estimate *estimate_new(const struct sl_filter_text *text,
                              const struct sl_filter_limits *limits, struct sl_filter *filter,
                              uint64_t seed);
void estimate_free(struct estimate *estimate); /* NULL is allowed */

/* Adds an event of a slot (below ESTIMATE_SLOTS_MAX), in any order. *ret_is_match: whether the
 * filter matches it. 0; -ENOMEM. */
int estimate_look(struct estimate *estimate, unsigned slot, const struct event *event,
                  bool *ret_is_match);
/* Only matches an event, without adding it. */
int estimate_wants(struct estimate *estimate, const struct event *event, bool *ret_is_match);
/* Says that in `seconds` of the slot this share of all shards' events was sampled. Slots with
 * consecutive numbers must be neighbours in time; slots without this call are ignored. */
void estimate_set_slot(struct estimate *estimate, unsigned slot, double seconds, double share);
/* The time from the first to the last slot; to be called last. */
void estimate_set_span(struct estimate *estimate, double seconds);
/* Keeps a reference to an example; the newest must come first. true: there are enough. */
bool estimate_keep_example(struct estimate *estimate, struct event *event);

struct estimate_rate {
    double per_second, low, high; /* events; low and high: the interval for the next ten minutes */
    double bytes_per_second;      /* JSON of the events */
};
struct estimate_rate estimate_rate(const struct estimate *estimate);

/* Prints the response, {"events":..,...}; `warnings` NULL: none. */
void estimate_print(const struct estimate *estimate, const struct sl_filter_warnings *warnings,
                    struct buffer *json);
