/* timelines.c - the home timeline of the caller, and the public timeline.
 *
 * A home timeline is assembled in rounds of calls (src/home/home_read.h), which are sent here. It
 * may begin where the caller has read to, which is read first. For the public timeline all shards
 * are asked at once for ids (src/social/public_timeline.h), and the newest posts are then read:
 * two round trips, and one more for each 1,000 events of a shard without a visible post, ten at
 * most. */
#include "src/home/home_read.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "gateway/api/request.h"
#include "src/social/public_timeline.h"

static void read_free(void *read)
{
    sl_home_read_free(read);
}

static const struct sl_post_row *row_at(const void *read, size_t i)
{
    return sl_home_read_at(read, i);
}

static int on_part(struct api_request *request, size_t part, const redisReply *reply)
{
    struct failure failure = {"out of memory"};
    int r = sl_home_read_take(request->state, part, reply, &failure);

    return r < 0 ? api_fail(request, r, &failure) : 0;
}

static int next_round(struct api_request *request, const redisReply *reply)
{
    struct failure failure = {"out of memory"};
    struct sl_call *calls;
    size_t count;
    int r;

    (void)reply;
    r = sl_home_read_calls(request->state, &calls, &count, &failure);
    if (r < 0)
        return api_fail(request, r, &failure);
    return count > 0 ? api_send_many(request, calls, count, on_part, next_round)
                     : api_list_answer_posts(request, request->state,
                                             sl_home_read_count(request->state), row_at);
}

static int read_home(struct api_request *request)
{
    const struct sl_user_ref reader = sl_user_by_id(request->caller);
    const struct sl_meta meta = api_meta(request);
    const struct sl_home_page page = {
        .before = request->page.before,
        .after = request->after,
        .limit = request->page.limit,
        .is_bare = api_wants_bare(request),
    };
    struct failure failure = {"out of memory"};
    struct sl_home_read *read;
    int r;

    r = sl_home_read_new(&read, &meta, &reader, &page, &failure);
    if (r < 0)
        return api_fail(request, r, &failure);
    read_free(request->state); /* of a page of which nothing was visible */
    request->state = read;
    request->free_state = read_free;
    return next_round(request, NULL);
}

static int on_last_read(struct api_request *request, const redisReply *reply)
{
    struct failure failure;
    int r = sl_last_read_reply(reply, &request->after, &failure);

    return r < 0 ? api_fail(request, r, &failure) : read_home(request);
}

int timelines_home(struct api_request *request, const redisReply *reply)
{
    const struct sl_user_ref reader = sl_user_by_id(request->caller);
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    (void)reply;
    if (!request->after_last_read)
        return read_home(request);
    request->after_last_read = false; /* it is known for the following pages */
    r = sl_last_read_call(&request->call, &meta, &reader, 0, &failure);
    return api_send(request, r, &failure, on_last_read);
}

/* --- the public timeline --- */

enum { ROUNDS_MAX = 10 };

struct public_page {
    unsigned rounds;
    uint64_t floor; /* of a round: the ids are complete down to this */
    size_t count;
    uint64_t posts[]; /* page.limit of each shard */
};

static int younger_first(const void *a, const void *b)
{
    const uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

    return one < other ? 1 : one > other ? -1 : 0;
}

static int on_public_part(struct api_request *request, size_t part, const redisReply *reply)
{
    struct public_page *page = request->state;
    struct failure failure;
    uint64_t stop;
    size_t count;
    int r;

    (void)part;
    r = sl_public_reply(reply, &stop, &count, &failure);
    for (size_t i = 0; r == 0 && i < count && i < request->page.limit; i++)
        r = sl_public_at(reply, i, &page->posts[page->count++], &failure);
    if (r < 0)
        return api_fail(request, r, &failure);
    page->floor = stop > page->floor ? stop : page->floor;
    return 0;
}

static int read_public(struct api_request *request);

static int on_public(struct api_request *request, const redisReply *reply)
{
    struct public_page *page = request->state;
    size_t shown = 0;

    (void)reply;
    qsort(page->posts, page->count, sizeof(page->posts[0]), younger_first);
    while (shown < page->count && shown < request->page.limit && page->posts[shown] >= page->floor)
        shown++;
    if (shown > 0)
        return api_list_answer_page(request, page->posts, shown, page->posts[shown - 1]);
    if (page->floor == 0 || page->rounds == ROUNDS_MAX)
        return api_list_answer_page(request, NULL, 0, page->floor);
    request->page.before = page->floor;
    return read_public(request);
}

static int read_public(struct api_request *request)
{
    const struct sl_meta meta = api_meta(request);
    struct sl_call *calls = mem_zalloc(mem_array_size(meta.shards, sizeof(*calls)));
    struct public_page *page = request->state;
    struct failure failure = {"out of memory"};
    int r = calls ? 0 : -ENOMEM;

    page->rounds++;
    page->count = 0;
    page->floor = 0;
    for (uint32_t shard = 0; r == 0 && shard < meta.shards; shard++)
        r = sl_public_call(&calls[shard], &meta, request->caller, shard, &request->page, &failure);
    r = r < 0 ? api_fail(request, r, &failure)
              : api_send_many(request, calls, meta.shards, on_public_part, on_public);
    for (uint32_t shard = 0; calls && shard < meta.shards; shard++)
        sl_call_done(&calls[shard]);
    mem_free(calls);
    return r;
}

int timelines_public(struct api_request *request, const redisReply *reply)
{
    const size_t room = request->page.limit * api_meta(request).shards;

    (void)reply;
    mem_free(request->state); /* of a page of which nothing was visible */
    request->state = mem_zalloc(sizeof(struct public_page) + room * sizeof(uint64_t));
    return request->state ? read_public(request) : api_fail_for_memory(request);
}
