#include "filters/match_set.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "filters/match_set_private.h"

struct sl_match_set *sl_match_set_new(void)
{
    return mem_zalloc(sizeof(struct sl_match_set));
}

void sl_match_set_free(struct sl_match_set *matches)
{
    if (!matches)
        return;
    mem_free(matches->subscriptions);
    mem_free(matches);
}

size_t sl_match_set_count(const struct sl_match_set *matches)
{
    return matches->count;
}

const uint32_t *sl_match_set_subscriptions(const struct sl_match_set *matches)
{
    return matches->subscriptions;
}

static int make_room(struct sl_match_set *matches, size_t count)
{
    size_t capacity = matches->capacity ? matches->capacity : 64;
    uint32_t *subscriptions;

    while (capacity - matches->count < count)
        capacity *= 2;
    if (capacity == matches->capacity)
        return 0;
    subscriptions =
        mem_realloc(matches->subscriptions, mem_array_size(capacity, sizeof(*subscriptions)));
    if (!subscriptions)
        return -ENOMEM;
    matches->subscriptions = subscriptions;
    matches->capacity = capacity;
    return 0;
}

int sl_match_set_add(struct sl_match_set *matches, const uint32_t *subscriptions, size_t count)
{
    int r = make_room(matches, count);

    if (r < 0)
        return r;
    memcpy(matches->subscriptions + matches->count, subscriptions, count * sizeof(*subscriptions));
    matches->count += count;
    return 0;
}
