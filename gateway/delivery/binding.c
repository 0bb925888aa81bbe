/* binding.c - where the subscriptions of the filter index lead: an array by their numbers, which
 * the index keeps small by giving them out again. */
#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "gateway/delivery/deliver_parts.h"

int binding_add(struct deliver *deliver, struct sl_filter *filter, struct lane *lane,
                bool *rule_hit, uint32_t *ret_subscription)
{
    uint32_t subscription;

    if (sl_filter_index_add(deliver->index, filter, &subscription) < 0)
        return -ENOMEM;
    if (subscription >= deliver->binding_capacity) {
        size_t capacity = deliver->binding_capacity ? deliver->binding_capacity : 64;
        struct binding *bindings;

        while (capacity <= subscription)
            capacity *= 2;
        bindings = mem_realloc(deliver->bindings, mem_array_size(capacity, sizeof(*bindings)));
        if (!bindings) {
            sl_filter_index_remove(deliver->index, subscription);
            return -ENOMEM;
        }
        deliver->bindings = bindings;
        deliver->binding_capacity = capacity;
    }
    deliver->bindings[subscription] = (struct binding){lane, rule_hit};
    *ret_subscription = subscription;
    return 0;
}

void binding_remove(struct deliver *deliver, uint32_t subscription)
{
    assert(subscription < deliver->binding_capacity);
    sl_filter_index_remove(deliver->index, subscription);
}
