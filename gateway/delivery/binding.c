/* binding.c - maps the subscriptions of the filter index to lanes: an array indexed by their
 * numbers, which stay small because the index reuses them.
 *
 * A client with the largest filters has 125,000 keys in the index, and many such clients may leave
 * at the same time. So a removed subscription leads nowhere at once, and the index removes its
 * filter later: an idle handle removes some in each turn of the loop, as long as any are left. */
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
    deliver->bindings[subscription] = (struct binding){.lane = lane, .rule_hit = rule_hit};
    *ret_subscription = subscription;
    return 0;
}

size_t binding_forget_some(struct deliver *deliver)
{
    size_t count = 0, bytes = 0;

    while (deliver->first_removal != NO_SUBSCRIPTION) {
        uint32_t subscription = deliver->first_removal;

        bytes += sl_filter_index_removal_bytes(deliver->index, subscription);
        if (count > 0 && bytes > BINDING_TURN_BYTES)
            break;
        deliver->first_removal = deliver->bindings[subscription].next_removal;
        sl_filter_index_remove(deliver->index, subscription);
        count++;
    }
    return count;
}

static void on_idle(uv_idle_t *remover)
{
    struct deliver *deliver = remover->data;

    binding_forget_some(deliver);
    if (deliver->first_removal == NO_SUBSCRIPTION)
        uv_idle_stop(remover);
}

void binding_remove(struct deliver *deliver, uint32_t subscription)
{
    assert(subscription < deliver->binding_capacity);
    assert(deliver->bindings[subscription].lane);
    deliver->bindings[subscription] = (struct binding){.next_removal = deliver->first_removal};
    deliver->first_removal = subscription;
    uv_idle_start(deliver->remover, on_idle);
}

int deliver_filter_cost(struct deliver *deliver, const struct sl_filter *filter, size_t *ret_bytes)
{
    int r = sl_filter_index_cost(deliver->index, filter, ret_bytes);

    if (r == 0)
        *ret_bytes += lane_key_bytes(sl_filter_key(filter).size);
    return r;
}

size_t deliver_filter_bytes(const struct deliver *deliver)
{
    struct sl_filter_index_stats stats;

    sl_filter_index_stats(deliver->index, &stats);
    return stats.cost + deliver->key_bytes;
}
