/* list.c - assembles a page: rows of the shard that has the list, then the missing ones.
 *
 * Complete rows of the reply are added at once. For the others the cache is asked first, if there
 * is one, then their shards, in parallel, and for posts the archive. Each round fills in rows by
 * their number, so the order remains that of the list. If nothing on a page is visible, the next
 * page is read. A page has at most `limit` rows (200), and a round at most one call to each
 * shard. */
#include "gateway/api/list.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "gateway/api/included.h"
#include "gateway/api/list_rows.h"
#include "gateway/api/request.h"
#include "src/archive/archived.h"
#include "src/cache/cached_rows.h"
#include "src/model/id.h"
#include "src/social/post_rows.h"
#include "src/social/row_json.h"
#include "src/social/user_list.h"

/* --- the answer --- */

static void append_missing(struct buffer *json, const struct api_list *list)
{
    const char *separator = "";

    buffer_append_str(json, ",\"missing\":[");
    for (size_t i = 0; i < list->count; i++) {
        if (list->rows[i].size > 0)
            continue;
        buffer_append_format(json, "%s\"%" PRIu64 "\"", separator, list->rows[i].id);
        separator = ",";
    }
    buffer_append_str(json, "]");
}

/* The row shown at position i. */
static struct sl_slice shown_row(const struct api_request *request, size_t i)
{
    const struct api_list *list = &request->list;

    for (size_t at = 0;; at++) {
        if (list->rows[at].size > 0 && i-- == 0)
            return sl_slice(list->json.data + list->rows[at].offset, list->rows[at].size);
    }
}

static int append_page(struct api_request *request, const redisReply *reply)
{
    const struct api_list *list = &request->list;
    struct buffer *json = &request->json;
    const char *separator = "";
    size_t shown = 0;

    (void)reply;
    buffer_append_str(json, "{\"items\":[");
    for (size_t i = 0; i < list->count; i++) {
        const struct api_list_row *row = &list->rows[i];
        const struct sl_slice text = sl_slice(list->json.data + row->offset, row->size);

        if (row->size == 0)
            continue;
        shown++;
        if (list->only_liked && !api_included_is_liked(request, shown - 1))
            continue;
        buffer_append_str(json, separator);
        separator = ",";
        if (request->included)
            api_included_append(json, request, shown - 1, text);
        else
            buffer_append_slice(json, text);
    }
    buffer_append_str(json, "]");
    if (list->tells_missing)
        append_missing(json, list);
    else if (list->next > 0)
        buffer_append_format(json, ",\"next\":\"%" PRIu64 "\"", list->next);
    buffer_append_str(json, "}");
    return api_answer(request, 200);
}

static int answer(struct api_request *request, const redisReply *reply)
{
    const struct api_list *list = &request->list;
    size_t shown = 0;

    if (list->json.failed || list->texts.failed)
        return api_fail_for_memory(request);
    if (list->next > 0 && list->count > 0 && list->json.size == 0) {
        request->page.before = list->next;
        return request->begin(request, NULL);
    }
    if (request->included || !(list->only_liked || api_wants_included(request)))
        return append_page(request, reply);
    for (size_t i = 0; i < list->count; i++)
        shown += list->rows[i].size > 0;
    return api_include(request, shown, shown_row, append_page);
}

/* --- rows of other shards --- */

/* What the cache knows about the i-th absent row. */
static struct sl_slice known_value(const struct api_request *request, size_t i)
{
    return i < request->known_count ? request->known[i].value : SL_SLICE_NONE;
}

/* Items that no longer exist are left out. */
static int take_user(struct api_request *request, uint32_t item, const struct sl_user_row *row,
                     const struct failure *failure)
{
    struct api_list *list = &request->list;

    (void)failure;
    if (row && api_list_add_user(list, list->absent[item], row, known_value(request, item)))
        api_keep_user(request, row);
    return 0;
}

static int on_users_part(struct api_request *request, size_t part, const redisReply *reply)
{
    return api_each_user(request, &request->calls, part, reply, take_user);
}

static int take_posts(struct api_request *request, size_t part, const redisReply *reply,
                      enum sl_cached_source source)
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
        const struct sl_slice known =
            source == SL_CACHED_FROM_REDIS ? known_value(request, items[i]) : SL_SLICE_NONE;

        r = sl_posts_at(reply, i, &row, &failure);
        if (r == 0 && api_list_add_post(list, list->absent[items[i]], &row, known)) {
            api_keep_post(request, &row, source);
        } else if (r == -ENOENT) {
            r = 0;
            if (known.data)
                api_note_stale(request);
        }
    }
    return r < 0 ? api_fail(request, r, &failure) : 0;
}

static int on_posts_part(struct api_request *request, size_t part, const redisReply *reply)
{
    return take_posts(request, part, reply, SL_CACHED_FROM_REDIS);
}

static int on_archived_part(struct api_request *request, size_t part, const redisReply *reply)
{
    return take_posts(request, part, reply, SL_CACHED_FROM_ARCHIVE);
}

/* request->known contains the absent rows. */
static int ask_for_users(struct api_request *request, const redisReply *reply)
{
    const struct sl_meta meta = api_meta(request);
    struct api_list *list = &request->list;
    struct sl_user_ref *users;
    struct failure failure = {"out of memory"};
    int r = -ENOMEM;

    (void)reply;
    users = mem_alloc(mem_array_size(list->absent_count, sizeof(*users)));
    for (size_t i = 0; users && i < list->absent_count; i++)
        users[i] = sl_user_by_id(request->known[i].id);
    if (users)
        r = sl_cached_users_calls(&request->calls, &meta, users, request->known, list->absent_count,
                                  &failure);
    mem_free(users);
    return api_send_all(request, r, &failure, on_users_part, answer);
}

/* --- rows from the archive --- */

/* Redis decides which of request->archived are visible: list->absent are the rows. */
static int judge_archived(struct api_request *request, api_step_fn then)
{
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    r = sl_archived_posts_calls(&request->calls, &meta, request->caller, request->archived.posts,
                                request->archived.count, &failure);
    return api_send_all(request, r, &failure, on_archived_part, then);
}

/* request->archived contains some of the missing rows, in their order. */
static int on_missing(struct api_request *request, const redisReply *reply)
{
    struct api_list *list = &request->list;
    size_t row = 0;

    list->absent_count = 0;
    for (size_t i = 0; i < request->archived.count; i++, row++) {
        while (list->rows[row].size > 0 || list->rows[row].id != request->archived.posts[i].id)
            row++;
        assert(row < list->count);
        api_list_add_absent(list, row);
    }
    return list->absent_count > 0 ? judge_archived(request, list->then)
                                  : list->then(request, reply);
}

/* For posts that Redis lacks, possibly because they were moved to the archive since the list was
 * read. */
static int fill_in(struct api_request *request, const redisReply *reply)
{
    struct api_list *list = &request->list;
    uint64_t *missing;
    size_t count = 0;
    int r;

    if (!api_has_archive(request) || list->count == 0)
        return list->then(request, reply);
    missing = mem_alloc(mem_array_size(list->count, sizeof(*missing)));
    if (!missing)
        return api_fail_for_memory(request);
    for (size_t i = 0; i < list->count; i++) {
        if (list->rows[i].size == 0)
            missing[count++] = list->rows[i].id;
    }
    r = count > 0 ? api_find_archived(request, missing, count, on_missing)
                  : list->then(request, reply);
    mem_free(missing);
    return r;
}

/* Rows that follow the last one. */
static int on_older(struct api_request *request, const redisReply *reply)
{
    struct api_list *list = &request->list;

    list->absent_count = 0;
    for (size_t i = 0; i < request->archived.count; i++) {
        list->rows[list->count].id = list->next = request->archived.posts[i].id;
        api_list_add_absent(list, list->count++);
    }
    return list->absent_count > 0 ? judge_archived(request, answer) : answer(request, reply);
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

static int find_owner(struct api_request *request, const redisReply *reply)
{
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    (void)reply;
    if (request->user.id != 0)
        return read_older(request);
    r = sl_user_find_call(&request->call, &meta, &request->user, &failure);
    return api_send(request, r, &failure, on_owner);
}

/* request->known contains the absent rows. */
static int ask_for_posts(struct api_request *request, const redisReply *reply)
{
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    (void)reply;
    r = sl_cached_posts_calls(&request->calls, &meta, request->caller, request->known,
                              request->list.absent_count, &failure);
    return api_send_all(request, r, &failure, on_posts_part, fill_in);
}

/* --- bare rows --- */

/* The cache was asked for the absent rows. Those that are complete now are no longer absent, and
 * their values are freed. */
static void use_known(struct api_request *request, enum sl_cache_kind kind)
{
    struct api_list *list = &request->list;
    size_t left = 0;

    for (size_t i = 0; i < list->absent_count; i++) {
        const size_t at = list->absent[i];
        const struct sl_cache_item known = request->known[i];
        bool is_whole = false;

        if (list->rows[at].is_bare && !list->texts.failed) {
            const struct sl_user_row user = api_list_bare_user(list, at);
            const struct sl_post_row post = api_list_bare_post(list, at);

            is_whole = kind == SL_CACHE_USER ? api_list_add_user(list, at, &user, known.value)
                                             : api_list_add_post(list, at, &post, known.value);
        }
        request->known[i] = request->known[left];
        if (is_whole) {
            request->known[i] = known; /* freed later */
            continue;
        }
        request->known[left] = known;
        list->absent[left++] = at;
    }
    list->absent_count = left;
}

static int on_known_users(struct api_request *request, const redisReply *reply)
{
    use_known(request, SL_CACHE_USER);
    return request->list.absent_count > 0 ? ask_for_users(request, reply) : answer(request, reply);
}

static int on_known_posts(struct api_request *request, const redisReply *reply)
{
    use_known(request, SL_CACHE_POST);
    return request->list.absent_count > 0 ? ask_for_posts(request, reply) : fill_in(request, reply);
}

/* Reads the absent rows, from the cache first. */
static int ask_for_absent(struct api_request *request, enum sl_cache_kind kind, api_step_fn next)
{
    const struct api_list *list = &request->list;
    uint64_t *ids = mem_alloc(mem_array_size(list->absent_count, sizeof(*ids)));
    int r;

    if (!ids)
        return api_fail_for_memory(request);
    for (size_t i = 0; i < list->absent_count; i++)
        ids[i] = list->rows[list->absent[i]].id;
    r = api_ask_cache(request, kind, ids, list->absent_count, next);
    mem_free(ids);
    return r;
}

/* Reads the missing posts, wherever they are, and continues with the step `then`. */
static int complete_posts(struct api_request *request, api_step_fn then)
{
    request->list.then = then;
    if (request->list.absent_count == 0)
        return then(request, NULL);
    return ask_for_absent(request, SL_CACHE_POST, on_known_posts);
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
        r = api_list_begin(list, count);
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct sl_listed_user listed;

        r = sl_user_list_at(reply, i, &listed, &failure);
        if (r < 0)
            break;
        list->rows[i].id = listed.row.user.id;
        list->next = listed.position;
        list->count++;
        if (listed.row.user.login.data) {
            api_list_add_user(list, i, &listed.row, SL_SLICE_NONE);
            api_keep_user(request, &listed.row);
            continue;
        }
        if (listed.row.user.name.data)
            api_list_add_bare_user(list, i, &listed.row);
        api_list_add_absent(list, i);
    }
    if (r < 0)
        return api_fail(request, r, &failure);
    return list->absent_count > 0 ? ask_for_absent(request, SL_CACHE_USER, on_known_users)
                                  : answer(request, NULL);
}

static void list_post(struct api_request *request, const struct sl_post_row *row)
{
    struct api_list *list = &request->list;
    size_t at = list->count++;

    list->rows[at].id = list->next = row->id;
    if (row->json.data) {
        api_list_add_post(list, at, row, SL_SLICE_NONE);
        api_keep_post(request, row, SL_CACHED_FROM_REDIS);
        return;
    }
    if (row->author != 0)
        api_list_add_bare_post(list, at, row);
    api_list_add_absent(list, at);
}

/* Room for at least `room` rows. 0, or refused. */
static int read_posts(struct api_request *request, const redisReply *reply, size_t room)
{
    struct api_list *list = &request->list;
    struct failure failure = {"out of memory"};
    size_t count;
    int r;

    r = sl_post_list_reply(reply, &count, &failure);
    if (r == 0)
        r = api_list_begin(list, count > room ? count : room);
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct sl_post_row row;

        r = sl_post_list_at(reply, i, &row, &failure);
        if (r < 0)
            break;
        list_post(request, &row);
    }
    return r < 0 ? api_fail(request, r, &failure) : 0;
}

int api_list_on_posts(struct api_request *request, const redisReply *reply)
{
    int r = read_posts(request, reply, 0);

    return r < 0 ? r : complete_posts(request, answer);
}

int api_list_on_profile(struct api_request *request, const redisReply *reply)
{
    const size_t limit = request->page.limit;
    api_step_fn then;
    int r;

    if (!api_has_archive(request))
        return api_list_on_posts(request, reply);
    r = read_posts(request, reply, limit);
    if (r < 0)
        return r;
    then = request->list.count < limit ? find_owner : answer;
    if (request->page.is_bare)
        return complete_posts(request, then);
    request->list.then = then;
    return fill_in(request, NULL);
}

int api_list_answer_posts(struct api_request *request, const void *context, size_t count,
                          api_list_row_fn row_at)
{
    if (api_list_begin(&request->list, count) < 0)
        return api_fail_for_memory(request);
    for (size_t i = 0; i < count; i++)
        list_post(request, row_at(context, i));
    return complete_posts(request, answer);
}

/* --- items by ids --- */

/* Begins a page with rows for `ids`, all of them absent, except ids that cannot exist. 0;
 * -ENOMEM. */
static int begin_with(struct api_request *request, const uint64_t *ids, size_t count)
{
    const struct sl_meta meta = api_meta(request);
    struct api_list *list = &request->list;

    if (api_list_begin(list, count) < 0)
        return -ENOMEM;
    for (list->count = 0; list->count < count; list->count++) {
        list->rows[list->count].id = ids[list->count];
        if (sl_id_shard(ids[list->count]) < meta.shards)
            api_list_add_absent(list, list->count);
    }
    return 0;
}

static int complete_users(struct api_request *request)
{
    return request->list.absent_count > 0 ? ask_for_absent(request, SL_CACHE_USER, on_known_users)
                                          : answer(request, NULL);
}

int api_list_answer_users(struct api_request *request, const uint64_t *ids, size_t count,
                          uint64_t next)
{
    if (begin_with(request, ids, count) < 0)
        return api_fail_for_memory(request);
    request->list.next = next;
    return complete_users(request);
}

int api_list_answer_page(struct api_request *request, const uint64_t *ids, size_t count,
                         uint64_t next)
{
    if (begin_with(request, ids, count) < 0)
        return api_fail_for_memory(request);
    request->list.next = next;
    return complete_posts(request, answer);
}

int api_list_answer_liked(struct api_request *request, const uint64_t *ids, size_t count,
                          uint64_t next)
{
    if (begin_with(request, ids, count) < 0)
        return api_fail_for_memory(request);
    request->list.next = next;
    request->list.only_liked = true;
    return complete_posts(request, answer);
}

int api_list_asked_users(struct api_request *request)
{
    if (begin_with(request, request->ids, request->ids_count) < 0)
        return api_fail_for_memory(request);
    request->list.tells_missing = true;
    return complete_users(request);
}

int api_list_asked_posts(struct api_request *request)
{
    if (begin_with(request, request->ids, request->ids_count) < 0)
        return api_fail_for_memory(request);
    request->list.tells_missing = true;
    return complete_posts(request, answer);
}
