/* gateway/streams/filter_budget.h - limits the memory of the filters of a worker, for each holder.
 *
 * Costs are in bytes as sl_filter_index_cost() estimates them, which is never too low. Each holder
 * pays for all its own filters, although the index stores equal filters once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct filter_budget;

/* The part that a stream uses; initialize it with {0}. */
struct filter_share {
    struct filter_holder *holder; /* NULL: it uses nothing */
    size_t bytes;
};

/* NULL: out of memory. */
struct filter_budget *filter_budget_new(void);
void filter_budget_free(struct filter_budget *budget); /* after all shares are 0 */

/* Sets the bytes that `share` uses; a holder may use `max_bytes` in total on this worker. Lowering
 * always succeeds. 0; -EDQUOT: it would be too much, and nothing has changed; -ENOMEM. */
int filter_budget_set(struct filter_budget *budget, struct sl_slice holder, size_t bytes,
                      size_t max_bytes, struct filter_share *share);
