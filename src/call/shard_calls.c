/* shard_calls.c - while the calls are built, `items` contains the number of the call for each item;
 * finishing sorts the items by call, with a counting sort. */
#include "src/call/shard_calls.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "src/call/shard_calls_build.h"

void sl_shard_calls_done(struct sl_shard_calls *calls)
{
    for (size_t i = 0; i < calls->calls_room; i++)
        sl_call_done(&calls->calls[i]);
    mem_free(calls->calls);
    mem_free(calls->items);
    mem_free(calls->ends);
    *calls = SL_SHARD_CALLS_INIT;
}

const uint32_t *sl_shard_calls_items(const struct sl_shard_calls *calls, size_t call,
                                     size_t *ret_count)
{
    size_t begin = call > 0 ? calls->ends[call - 1] : 0;

    assert(call < calls->count);
    *ret_count = calls->ends[call] - begin;
    return calls->items + begin;
}

int sl_shard_calls_begin(struct sl_shard_calls *calls, const struct sl_meta *meta, size_t count,
                         struct failure *reterr)
{
    size_t room = count < meta->shards ? count : meta->shards;

    assert(count <= UINT32_MAX);
    assert(meta->shards > 0);
    sl_shard_calls_done(calls);
    if (count == 0)
        return 0;
    calls->calls = mem_zalloc(mem_array_size(room, sizeof(*calls->calls)));
    calls->items = mem_alloc(mem_array_size(count, sizeof(*calls->items)));
    calls->ends = mem_zalloc(mem_array_size(room, sizeof(*calls->ends)));
    if (calls->calls)
        calls->calls_room = room;
    if (calls->calls && calls->items && calls->ends)
        return 0;
    sl_shard_calls_done(calls);
    return failure_set(reterr, -ENOMEM, "out of memory");
}

struct sl_call *sl_shard_calls_next(struct sl_shard_calls *calls, uint32_t shard, bool *ret_is_new)
{
    size_t call = 0;

    while (call < calls->count && calls->calls[call].shard != shard)
        call++;
    *ret_is_new = call == calls->count;
    if (*ret_is_new) {
        assert(calls->count < calls->calls_room);
        calls->calls[calls->count++].shard = shard;
    }
    calls->ends[call]++;
    calls->items[calls->item_count++] = (uint32_t)call;
    return &calls->calls[call];
}

/* Turns the call of each item into the items of each call. */
static int sort_items(struct sl_shard_calls *calls)
{
    uint32_t *sorted = mem_alloc(mem_array_size(calls->item_count, sizeof(*sorted)));
    uint32_t end = 0;

    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < calls->count; i++) {
        uint32_t begin = end;

        end += calls->ends[i];
        calls->ends[i] = begin; /* advances to the end as items are added */
    }
    for (size_t i = 0; i < calls->item_count; i++)
        sorted[calls->ends[calls->items[i]]++] = (uint32_t)i;
    mem_free(calls->items);
    calls->items = sorted;
    return 0;
}

int sl_shard_calls_finish(struct sl_shard_calls *calls, int r, struct failure *reterr)
{
    for (size_t i = 0; r == 0 && i < calls->count; i++)
        r = sl_call_finish(&calls->calls[i], reterr);
    if (r == 0 && calls->count > 0 && sort_items(calls) < 0)
        r = failure_set(reterr, -ENOMEM, "out of memory");
    if (r < 0)
        sl_shard_calls_done(calls);
    return r;
}
