/* gateway/delivery/rule_set.h - the named subscriptions of one client of /v1/stream.
 *
 * It belongs to the client's lane in deliver, and is freed when the client leaves. */
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

/* Adds a rule, or replaces the one with the same id, between two events: no event is missed or sent
 * twice. A replaced rule moves to the end of the order. 0; -ENOMEM: nothing has changed. */
int rule_set_put(struct rule_set *rules, struct sl_slice id, struct sl_slice tag,
                 struct sl_filter *filter);
/* 0; -ENOENT. */
int rule_set_remove(struct rule_set *rules, struct sl_slice id);
/* The sum of the costs of their filters in bytes, by deliver_filter_cost(). */
size_t rule_set_bytes(const struct rule_set *rules);
/* The cost of the rule's filter, 0 if there is none with the id; *ret_freed: how much of it its
 * removal frees, which is nothing while others have an equal filter. */
size_t rule_set_bytes_of(const struct rule_set *rules, struct sl_slice id, size_t *ret_freed);
size_t rule_set_count(const struct rule_set *rules);
bool rule_set_has(const struct rule_set *rules, struct sl_slice id);
/* The rule at `index` in the order of adding; NULL: there is none. Linear in `index`. */
const struct named_rule *rule_set_at(const struct rule_set *rules, size_t index);
