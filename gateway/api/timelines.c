/* timelines.c - the home timeline of the subject.
 *
 * It is put together in rounds of calls (src/home/home_read.h); this sends them. */
#include "src/home/home_read.h"

#include <inttypes.h>

#include "gateway/api/request.h"
#include "src/social/row_json.h"

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

int timelines_home(struct api_request *request, const redisReply *reply)
{
    const struct sl_user_ref reader = sl_user_by_id(request->subject);
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

    (void)reply;
    r = sl_home_read_new(&read, &meta, &reader, &page, &failure);
    if (r < 0)
        return api_fail(request, r, &failure);
    read_free(request->state); /* of a page of which nothing was left */
    request->state = read;
    request->free_state = read_free;
    return next_round(request, NULL);
}
