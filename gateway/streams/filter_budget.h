/* gateway/streams/filter_budget.h - what the filters of a worker's streams may cost of memory, all
 * together and for one holder.
 *
 * Costs are bytes as sl_filter_index_cost() tells them: at least the truth. What is held for all
 * the index knows, where equal filters are one; a holder pays for each of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct filter_budget;

/* What a stream has taken of it; starts as {0}. */
struct filter_share {
    struct filter_holder *holder; /* NULL: it has taken nothing */
    size_t bytes;
};

/* NULL: out of memory. */
struct filter_budget *filter_budget_new(void);
void filter_budget_free(struct filter_budget *budget); /* nobody holds a share any more */

/* From now on `share` is `bytes`, of which its holder may have `max_bytes` in all, on this worker.
 * 0; -EDQUOT: it would have more, and nothing has changed; -ENOMEM. Less than it was always goes.
 */
int filter_budget_set(struct filter_budget *budget, struct sl_slice holder, size_t bytes,
                      size_t max_bytes, struct filter_share *share);
