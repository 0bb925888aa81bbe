#include "gateway/streams/filter_budget.h"

#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/hash_map.h"

/* The sum of a holder's shares; exists while there is one. */
struct filter_holder {
    size_t bytes;
    size_t name_size;
    char name[];
};

struct filter_budget {
    struct hash_map *holders; /* name -> struct filter_holder */
};

struct filter_budget *filter_budget_new(void)
{
    struct filter_budget *budget = mem_zalloc(sizeof(*budget));

    if (!budget)
        return NULL;
    budget->holders = hash_map_new();
    if (!budget->holders) {
        mem_free(budget);
        return NULL;
    }
    return budget;
}

void filter_budget_free(struct filter_budget *budget)
{
    if (!budget)
        return;
    assert(hash_map_count(budget->holders) == 0);
    hash_map_free(budget->holders);
    mem_free(budget);
}

/* NULL: out of memory. */
static struct filter_holder *find_or_add(struct filter_budget *budget, struct sl_slice name)
{
    struct filter_holder *holder = hash_map_get(budget->holders, name);

    if (holder)
        return holder;
    holder = mem_zalloc(sizeof(*holder) + name.size);
    if (!holder)
        return NULL;
    holder->name_size = name.size;
    memcpy(holder->name, name.data, name.size);
    if (hash_map_add(budget->holders, name, holder) < 0) {
        mem_free(holder);
        return NULL;
    }
    return holder;
}

static void drop_if_empty(struct filter_budget *budget, struct filter_holder *holder)
{
    if (holder->bytes > 0)
        return;
    hash_map_remove(budget->holders, sl_slice(holder->name, holder->name_size));
    mem_free(holder);
}

int filter_budget_set(struct filter_budget *budget, struct sl_slice name, size_t bytes,
                      size_t max_bytes, struct filter_share *share)
{
    struct filter_holder *holder = share->holder;
    size_t others;

    if (bytes == share->bytes)
        return 0;
    if (!holder)
        holder = find_or_add(budget, name);
    if (!holder)
        return -ENOMEM;
    assert(holder->bytes >= share->bytes);
    others = holder->bytes - share->bytes;
    if (bytes > share->bytes && (others > max_bytes || bytes > max_bytes - others)) {
        drop_if_empty(budget, holder);
        return -EDQUOT;
    }
    holder->bytes = others + bytes;
    *share = (struct filter_share){bytes > 0 ? holder : NULL, bytes};
    drop_if_empty(budget, holder);
    return 0;
}
