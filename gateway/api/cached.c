/* cached.c - what requests have to do with the cache: to ask it first, to give it what it lacked.
 */
#include "gateway/api/engine.h"

#include <errno.h>

#include "base/alloc.h"
#include "src/cache/cached.h"

static bool has_cache(const struct api_request *request)
{
    return request->api->settings.cache;
}

bool api_wants_bare(const struct api_request *request)
{
    return has_cache(request) && !cache_reader_is_away(request->api->settings.cache);
}

void api_cached_done(struct api_request *request)
{
    if (request->kept_count > 0)
        cache_reader_put_take(request->api->settings.cache, request->kept, request->kept_count,
                              request->began_wall_ms);
    else
        mem_free(request->kept);
    sl_cache_items_done(request->known, request->known_count);
    mem_free(request->known);
}

/* --- to ask --- */

static void on_known(void *owner, int r, struct sl_cache_item *items, size_t count)
{
    struct api_request *request = owner;

    for (size_t i = 0; items && i < count; i++) {
        request->known[i].value = items[i].value;
        items[i].value = SL_SLICE_NONE;
    }
    if (!request->answered)
        api_request_free(request);
    else if (r < 0)
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

/* --- to give --- */

/* Takes the value. */
static void keep_take(struct api_request *request, const struct sl_cache_item *item)
{
    if (request->kept_count == request->kept_room) {
        size_t room = request->kept_room ? 2 * request->kept_room : 8;
        struct sl_cache_item *kept =
            mem_realloc(request->kept, mem_array_size(room, sizeof(*kept)));

        if (!kept) { /* then not */
            mem_free((char *)item->value.data);
            return;
        }
        request->kept = kept;
        request->kept_room = room;
    }
    request->kept[request->kept_count++] = *item;
}

void api_keep_post(struct api_request *request, const struct sl_post_row *row,
                   enum sl_cached_source source)
{
    struct buffer value = BUFFER_INIT;

    if (has_cache(request) && row->json.data && sl_cached_post_value(&value, row, source))
        keep_take(request, &(struct sl_cache_item){SL_CACHE_POST, row->id, buffer_slice(&value)});
    else
        buffer_done(&value);
}

void api_keep_user(struct api_request *request, const struct sl_user_row *row)
{
    struct buffer value = BUFFER_INIT;

    if (has_cache(request) && sl_cached_user_value(&value, row))
        keep_take(request,
                  &(struct sl_cache_item){SL_CACHE_USER, row->user.id, buffer_slice(&value)});
    else
        buffer_done(&value);
}

void api_note_stale(struct api_request *request)
{
    metric_add(request->api->settings.metrics, METRIC_CACHE_STALE, 1);
}

void api_forget_post(struct api_request *request, uint64_t post)
{
    const struct sl_cache_item item = {SL_CACHE_POST, post, SL_SLICE_NONE};
    struct sl_cache_item *items;

    if (!has_cache(request))
        return;
    items = mem_copy(&item, sizeof(item));
    if (items)
        cache_reader_drop_take(request->api->settings.cache, items, 1);
}
