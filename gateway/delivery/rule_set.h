/* gateway/delivery/rule_set.h - the named subscriptions of one client of /v1/stream.
 *
 * Belongs to the client's lane in deliver; goes when the client leaves. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "filters/filter.h"

struct rule_set;

struct named_rule {
    const char *id;
    const char *tag; /* NULL: none */
    struct sl_filter *filter;
};

/* Adds a rule, or puts it in the place of the one with the same id: from one event to the next,
 * none missed, none twice. A replaced rule goes to the end of the order. 0; -ENOMEM: nothing has
 * changed. */
int rule_set_put(struct rule_set *rules, struct sl_slice id, struct sl_slice tag,
                 struct sl_filter *filter);
/* 0; -ENOENT. */
int rule_set_remove(struct rule_set *rules, struct sl_slice id);
/* What their filters cost together, in bytes, as deliver_filter_cost() told it of each. */
size_t rule_set_bytes(const struct rule_set *rules);
/* What that of one of them costs, 0 if there is none with the id; and how much of it is freed when
 * it goes: nothing while others have an equal one. */
size_t rule_set_bytes_of(const struct rule_set *rules, struct sl_slice id, size_t *ret_freed);
size_t rule_set_count(const struct rule_set *rules);
bool rule_set_has(const struct rule_set *rules, struct sl_slice id);
/* The rule at `index` in the order of adding; NULL: past the end. Linear in `index`. */
const struct named_rule *rule_set_at(const struct rule_set *rules, size_t index);
