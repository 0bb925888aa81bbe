/* cache_ask.c - asks the cache before Redis. */
#include "gateway/api/engine.h"

#include <errno.h>

#include "base/alloc.h"

static void on_known(void *owner, int r, struct sl_cache_item *items, size_t count)
{
    struct api_request *request = owner;

    for (size_t i = 0; items && i < count; i++) {
        request->known[i].value = items[i].value;
        items[i].value = SL_SLICE_NONE;
    }
    if (api_request_reap(request))
        return;
    if (r < 0)
        api_settle(request, api_fail(request, -EAGAIN, &(struct failure){"the server ends"}));
    else
        api_settle(request, request->next(request, NULL));
}

int api_ask_cache(struct api_request *request, enum sl_cache_kind kind, const uint64_t *ids,
                  size_t count, api_step_fn next)
{
    struct cache_reader *cache = request->api->settings.cache;
    struct sl_cache_item *items = mem_zalloc(mem_array_size(count, sizeof(*items)));

    sl_cache_items_done(request->known, request->known_count);
    mem_free(request->known);
    request->known = items;
    request->known_count = items ? count : 0;
    if (!items)
        return api_fail_for_memory(request);
    for (size_t i = 0; i < count; i++)
        items[i] = (struct sl_cache_item){kind, ids[i], SL_SLICE_NONE};
    request->next = next;
    items = cache ? mem_copy(items, count * sizeof(*items)) : NULL;
    if (items && cache_reader_get_take(cache, items, count, on_known, request) == 0)
        return API_WAITS;
    return next(request, NULL);
}
