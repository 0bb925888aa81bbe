/* common.c - lists the users who follow both of two users, and those whom both follow.
 *
 * The first user's list is read in stretches of 2,000 (src/social/common_users.h), and the common
 * users are read completely at the end. Logins are looked up first: a page costs a round trip for
 * that, one or two for each stretch, and one for the users. A request reads at most STRETCH_MAX
 * stretches; the page may then be short or empty although more follow, as its `next` says. */
#include "src/social/common_users.h"

#include <errno.h>

#include "base/alloc.h"
#include "gateway/api/request.h"

enum { STRETCH_MAX = 10 };

struct search {
    enum sl_common_list list;
    uint64_t users[2];
    struct sl_page page;
    unsigned stretches;
    size_t count; /* of the common users found so far */
    size_t candidates;
    struct sl_common_user *stretch; /* of the first user's list, to be checked by the second user's
                                       shard */
    uint64_t next;                  /* position after the last entry examined; 0: the end */
    uint64_t common[];              /* up to request->page.limit */
};

static void free_search(void *state)
{
    struct search *search = state;

    mem_free(search->stretch);
    mem_free(search);
}

static int read_stretch(struct api_request *request, const redisReply *reply);

static int go_on(struct api_request *request)
{
    const struct search *search = request->state;

    if (search->next == 0 || search->count == request->page.limit ||
        search->stretches == STRETCH_MAX)
        return api_list_answer_users(request, search->common, search->count, search->next);
    return read_stretch(request, NULL);
}

static int on_checked(struct api_request *request, const redisReply *reply)
{
    struct search *search = request->state;
    struct failure failure;
    int r;

    r = sl_common_users_check_reply(reply, search->candidates, &failure);
    for (size_t i = 0; r == 0 && i < search->candidates; i++) {
        bool is_common = false;

        r = sl_common_users_check_at(reply, i, &is_common, &failure);
        if (r < 0 || !is_common)
            continue;
        search->common[search->count++] = search->stretch[i].id;
        if (search->count == request->page.limit) {
            if (i + 1 < search->candidates)
                search->next = search->stretch[i].position;
            break;
        }
    }
    return r < 0 ? api_fail(request, r, &failure) : go_on(request);
}

/* Asks the second user's shard about all of them. */
static int check(struct api_request *request, const redisReply *reply)
{
    const struct sl_meta meta = api_meta(request);
    struct search *search = request->state;
    struct failure failure;
    int r = 0;

    mem_free(search->stretch);
    search->stretch = mem_alloc(mem_array_size(search->candidates + 1, sizeof(*search->stretch)));
    if (!search->stretch)
        return api_fail_for_memory(request);
    for (size_t i = 0; r == 0 && i < search->candidates; i++)
        r = sl_common_users_at(reply, i, &search->stretch[i], &failure);
    if (r == 0)
        r = sl_common_users_check_call(&request->call, &meta, search->list, search->users[1], reply,
                                       &failure);
    return api_send(request, r, &failure, on_checked);
}

static int on_stretch(struct api_request *request, const redisReply *reply)
{
    struct search *search = request->state;
    struct sl_common_page page;
    struct sl_common_user user;
    struct failure failure;
    int r;

    r = sl_common_users_reply(reply, &page, &failure);
    if (r < 0)
        return api_fail(request, r, &failure);
    search->next = page.next;
    search->candidates = page.count;
    if (page.needs_check)
        return check(request, reply);
    for (size_t i = 0; r == 0 && i < page.count && search->count < request->page.limit; i++) {
        r = sl_common_users_at(reply, i, &user, &failure);
        if (r == 0)
            search->common[search->count++] = user.id;
    }
    return r < 0 ? api_fail(request, r, &failure) : go_on(request);
}

static int read_stretch(struct api_request *request, const redisReply *reply)
{
    const struct sl_meta meta = api_meta(request);
    struct search *search = request->state;
    struct failure failure;
    int r;

    (void)reply;
    if (search->stretches++ > 0)
        search->page.before = search->next;
    search->page.limit = request->page.limit - search->count;
    r = sl_common_users_call(&request->call, &meta, search->list, search->users[0],
                             search->users[1], &search->page, &failure);
    return api_send(request, r, &failure, on_stretch);
}

static int take_user(struct api_request *request, uint32_t item, const struct sl_user_row *row,
                     const struct failure *failure)
{
    struct search *search = request->state;

    if (!row)
        return api_fail(request, -ENOENT, failure);
    search->users[item] = row->user.id;
    return 0;
}

static int on_found(struct api_request *request, size_t part, const redisReply *reply)
{
    return api_each_user(request, &request->calls, part, reply, take_user);
}

static int begin(struct api_request *request, enum sl_common_list list)
{
    const struct sl_user_ref users[2] = {request->user, request->with};
    const struct sl_meta meta = api_meta(request);
    struct search *search;
    struct failure failure;
    int r;

    search = mem_zalloc(sizeof(*search) + request->page.limit * sizeof(search->common[0]));
    if (!search)
        return api_fail_for_memory(request);
    request->state = search;
    request->free_state = free_search;
    search->list = list;
    search->page = request->page;
    search->users[0] = users[0].id;
    search->users[1] = users[1].id;
    if (users[0].id != 0 && users[1].id != 0)
        return read_stretch(request, NULL);
    r = sl_users_calls(&request->calls, &meta, users, 2, &failure);
    return api_send_all(request, r, &failure, on_found, read_stretch);
}

int common_followers(struct api_request *request, const redisReply *reply)
{
    (void)reply;
    return begin(request, SL_COMMON_FOLLOWERS);
}

int common_following(struct api_request *request, const redisReply *reply)
{
    (void)reply;
    return begin(request, SL_COMMON_FOLLOWING);
}
