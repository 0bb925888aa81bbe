/* cache_keep.c - collects what a request has read and the cache lacks.
 *
 * It is passed to the cache as a whole when the request ends. */
#include "gateway/api/engine.h"

#include "base/alloc.h"
#include "src/cache/cached_rows.h"

static bool has_cache(const struct api_request *request)
{
    return request->api->settings.cache;
}

bool api_wants_bare(const struct api_request *request)
{
    return has_cache(request) && !cache_reader_is_away(request->api->settings.cache);
}

void api_cache_done(struct api_request *request)
{
    if (request->kept_count > 0)
        cache_reader_put_take(request->api->settings.cache, request->kept, request->kept_count,
                              request->began_wall_ms);
    else
        mem_free(request->kept);
    sl_cache_items_done(request->known, request->known_count);
    mem_free(request->known);
}

/* Takes ownership of the value. */
static void keep_take(struct api_request *request, const struct sl_cache_item *item)
{
    if (request->kept_count == request->kept_room) {
        size_t room = request->kept_room ? 2 * request->kept_room : 8;
        struct sl_cache_item *kept =
            mem_realloc(request->kept, mem_array_size(room, sizeof(*kept)));

        if (!kept) { /* then it is not stored */
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
