#include "gateway/api/list.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "gateway/api/request.h"
#include "gateway/api/route.h"
#include "src/archived.h"
#include "src/post_rows.h"
#include "src/row_json.h"
#include "src/user_list.h"

void api_list_done(struct api_list *list)
{
    mem_free(list->rows);
    mem_free(list->absent);
    buffer_done(&list->json);
    *list = (struct api_list){0};
}

static int list_begin(struct api_list *list, size_t count)
{
    api_list_done(list);
    if (count == 0)
        return 0;
    list->rows = mem_zalloc(mem_array_size(count, sizeof(*list->rows)));
    list->absent = mem_zalloc(mem_array_size(count, sizeof(*list->absent)));
    return list->rows && list->absent ? 0 : -ENOMEM;
}

/* --- rows --- */

static void add_user(struct api_list *list, size_t at, const struct sl_user_row *user)
{
    list->rows[at].offset = list->json.size;
    sl_user_row_json(&list->json, user);
    list->rows[at].size = list->json.size - list->rows[at].offset;
}

static void add_post(struct api_list *list, size_t at, const struct sl_post_row *post)
{
    list->rows[at].offset = list->json.size;
    sl_post_row_json(&list->json, post);
    list->rows[at].size = list->json.size - list->rows[at].offset;
}

static void add_absent(struct api_list *list, size_t at)
{
    list->absent[list->absent_count++] = at;
}

/* --- the answer --- */

static int answer(struct api_request *request, const redisReply *reply)
{
    struct api_list *list = &request->list;
    struct buffer *json = &request->json;
    const char *separator = "";

    (void)reply;
    if (list->json.failed)
        return api_fail_for_memory(request);
    if (list->count > 0 && list->json.size == 0) {
        request->page.before = list->next;
        return request->route->begin(request, NULL);
    }
    buffer_append_str(json, "{\"items\":[");
    for (size_t i = 0; i < list->count; i++) {
        const struct api_list_row *row = &list->rows[i];

        if (row->size == 0)
            continue;
        buffer_append_str(json, separator);
        buffer_append(json, list->json.data + row->offset, row->size);
        separator = ",";
    }
    buffer_append_str(json, "]");
    if (list->count > 0)
        buffer_append_format(json, ",\"next\":\"%" PRIu64 "\"", list->next);
    buffer_append_str(json, "}");
    return api_answer(request, 200);
}

/* --- rows of other shards --- */

/* Adds what the reply to call `part` has. Things that are gone are left out. */
static int on_users_part(struct api_request *request, size_t part, const redisReply *reply)
{
    struct api_list *list = &request->list;
    struct sl_user_row row;
    struct failure failure;
    const uint32_t *items;
    size_t count;
    int r;

    items = sl_shard_calls_items(&request->calls, part, &count);
    r = sl_users_reply(reply, count, &failure);
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = sl_users_at(reply, i, &row, &failure);
        if (r == 0)
            add_user(list, list->absent[items[i]], &row);
        else if (r == -ENOENT)
            r = 0;
    }
    return r < 0 ? api_fail(request, r, &failure) : 0;
}

static int on_posts_part(struct api_request *request, size_t part, const redisReply *reply)
{
    struct api_list *list = &request->list;
    struct sl_post_row row;
    struct failure failure;
    const uint32_t *items;
    size_t count;
    int r;

    items = sl_shard_calls_items(&request->calls, part, &count);
    r = sl_posts_reply(reply, count, &failure);
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = sl_posts_at(reply, i, &row, &failure);
        if (r == 0)
            add_post(list, list->absent[items[i]], &row);
        else if (r == -ENOENT)
            r = 0;
    }
    return r < 0 ? api_fail(request, r, &failure) : 0;
}

static int ask_for_users(struct api_request *request)
{
    const struct sl_meta meta = api_meta(request);
    struct api_list *list = &request->list;
    struct sl_user_ref *users;
    struct failure failure = {"out of memory"};
    int r = -ENOMEM;

    users = mem_alloc(mem_array_size(list->absent_count, sizeof(*users)));
    for (size_t i = 0; users && i < list->absent_count; i++)
        users[i] = sl_user_by_id(list->rows[list->absent[i]].id);
    if (users)
        r = sl_users_calls(&request->calls, &meta, users, list->absent_count, &failure);
    mem_free(users);
    return api_send_all(request, r, &failure, on_users_part, answer);
}

/* --- rows that the archive has --- */

/* Redis says what of request->archived is to be seen: list->absent are the rows. */
static int judge_archived(struct api_request *request)
{
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    r = sl_archived_posts_calls(&request->calls, &meta, request->subject, request->archived.posts,
                                request->archived.count, &failure);
    return api_send_all(request, r, &failure, on_posts_part, answer);
}

/* The page has some of the rows that lack, in their order. */
static int on_missing(struct api_request *request, const redisReply *reply)
{
    struct api_list *list = &request->list;
    size_t row = 0;

    list->absent_count = 0;
    for (size_t i = 0; i < request->archived.count; i++, row++) {
        while (list->rows[row].size > 0 || list->rows[row].id != request->archived.posts[i].id)
            row++;
        assert(row < list->count);
        add_absent(list, row);
    }
    return list->absent_count > 0 ? judge_archived(request) : answer(request, reply);
}

/* Posts that Redis has not. */
static int fill_in(struct api_request *request, const redisReply *reply)
{
    struct api_list *list = &request->list;
    uint64_t *missing;
    size_t count = 0;
    int r;

    if (!api_has_archive(request) || list->count == 0)
        return answer(request, reply);
    missing = mem_alloc(mem_array_size(list->count, sizeof(*missing)));
    if (!missing)
        return api_fail_for_memory(request);
    for (size_t i = 0; i < list->count; i++) {
        if (list->rows[i].size == 0)
            missing[count++] = list->rows[i].id;
    }
    r = count > 0 ? api_find_archived(request, missing, count, on_missing) : answer(request, reply);
    mem_free(missing);
    return r;
}

/* What comes behind the last row. */
static int on_older(struct api_request *request, const redisReply *reply)
{
    struct api_list *list = &request->list;

    list->absent_count = 0;
    for (size_t i = 0; i < request->archived.count; i++) {
        list->rows[list->count].id = list->next = request->archived.posts[i].id;
        add_absent(list, list->count++);
    }
    return list->absent_count > 0 ? judge_archived(request) : answer(request, reply);
}

static int read_older(struct api_request *request)
{
    const struct api_list *list = &request->list;

    return api_list_archived(request, request->user.id,
                             list->count > 0 ? list->next : request->page.before,
                             request->page.limit - list->count, on_older);
}

static int on_owner(struct api_request *request, const redisReply *reply)
{
    struct failure failure;
    struct sl_user user;
    int r;

    r = sl_user_find_reply(reply, &user, &failure);
    if (r < 0)
        return api_fail(request, r, &failure);
    request->user = sl_user_by_id(user.id);
    return read_older(request);
}

static int find_owner(struct api_request *request)
{
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    if (request->user.id != 0)
        return read_older(request);
    r = sl_user_find_call(&request->call, &meta, &request->user, &failure);
    return api_send(request, r, &failure, on_owner);
}

static int ask_for_posts(struct api_request *request)
{
    const struct sl_meta meta = api_meta(request);
    struct api_list *list = &request->list;
    struct failure failure = {"out of memory"};
    int r = -ENOMEM;
    uint64_t *posts;

    posts = mem_alloc(mem_array_size(list->absent_count, sizeof(*posts)));
    for (size_t i = 0; posts && i < list->absent_count; i++)
        posts[i] = list->rows[list->absent[i]].id;
    if (posts)
        r = sl_posts_calls(&request->calls, &meta, request->subject, posts, list->absent_count,
                           &failure);
    mem_free(posts);
    return api_send_all(request, r, &failure, on_posts_part, fill_in);
}

/* --- the list --- */

int api_list_on_users(struct api_request *request, const redisReply *reply)
{
    struct api_list *list = &request->list;
    struct failure failure = {"out of memory"};
    size_t count;
    int r;

    r = sl_user_list_reply(reply, &count, &failure);
    if (r == 0)
        r = list_begin(list, count);
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct sl_listed_user listed;

        r = sl_user_list_at(reply, i, &listed, &failure);
        if (r < 0)
            break;
        list->rows[i].id = listed.row.user.id;
        list->next = listed.position;
        list->count++;
        if (listed.row.user.login.data)
            add_user(list, i, &listed.row);
        else
            add_absent(list, i);
    }
    if (r < 0)
        return api_fail(request, r, &failure);
    return list->absent_count > 0 ? ask_for_users(request) : answer(request, NULL);
}

/* Room for `room` rows at least. 0, or refused. */
static int read_posts(struct api_request *request, const redisReply *reply, size_t room)
{
    struct api_list *list = &request->list;
    struct failure failure = {"out of memory"};
    size_t count;
    int r;

    r = sl_post_list_reply(reply, &count, &failure);
    if (r == 0)
        r = list_begin(list, count > room ? count : room);
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct sl_post_row row;

        r = sl_post_list_at(reply, i, &row, &failure);
        if (r < 0)
            break;
        list->rows[i].id = list->next = row.id;
        list->count++;
        if (row.json.data)
            add_post(list, i, &row);
        else
            add_absent(list, i);
    }
    return r < 0 ? api_fail(request, r, &failure) : 0;
}

int api_list_on_posts(struct api_request *request, const redisReply *reply)
{
    int r = read_posts(request, reply, 0);

    if (r < 0)
        return r;
    return request->list.absent_count > 0 ? ask_for_posts(request) : answer(request, NULL);
}

int api_list_on_profile(struct api_request *request, const redisReply *reply)
{
    const size_t limit = request->page.limit;
    int r;

    if (!api_has_archive(request))
        return api_list_on_posts(request, reply);
    r = read_posts(request, reply, limit);
    if (r < 0)
        return r;
    return request->list.count < limit ? find_owner(request) : fill_in(request, NULL);
}
