/* included.c - reads `include` for a whole page in two rounds of calls.
 *
 *     first    to each shard with posts of the page, a call for up to 20 of them: whether the
 * caller likes them, their newest comments and likers; and a call to the caller's shard: whom the
 * caller follows, hides from and mutes second   for comments and likers in other shards than their
 * post, a call to each shard
 *
 * The author of a post is in its JSON, so no other data is needed. Comments in other shards may not
 * be visible to the reader: some more than requested are read, and the surplus is not shown.
 * Comments that only the archive has are not shown. A page has up to 200 posts, with at most 1,000
 * comments and likers in total (question.c), so that no script takes long. */
#include "gateway/api/included.h"

#include <errno.h>

#include "base/alloc.h"
#include "gateway/api/route.h"
#include "src/model/id.h"
#include "src/social/row_json.h"

enum { COMMENTS_MAX = SL_INCLUDED_MAX + SL_INCLUDED_SPARE };

struct row {
    uint64_t id;
    size_t offset, size; /* of its JSON; 0: not known (yet), or not visible */
};

struct thing {
    uint64_t id, author; /* for a user: the user itself */
    bool is_liked;
    struct sl_viewer viewer;
    size_t comment_count, liker_count;
    struct row *comments, *likers;
};

/* Rows that the second round reads. */
struct absent {
    size_t count;
    struct row **rows;
    uint64_t *ids;
    struct sl_shard_calls calls;
};

struct api_included {
    api_step_fn then;
    bool shows_posts;
    size_t count;
    struct thing *things;
    size_t *order; /* of the items, grouped by call */
    size_t *ends;  /* the end of each call's part of `order` */
    size_t part_count;
    struct row *rows; /* of all items */
    struct absent comments, likers;
    struct buffer json;
};

bool api_wants_included(const struct api_request *request)
{
    return !request->included && (request->include.comments > 0 || request->include.likers > 0 ||
                                  request->includes_viewer);
}

static void absent_done(struct absent *absent)
{
    mem_free(absent->rows);
    mem_free(absent->ids);
    sl_shard_calls_done(&absent->calls);
}

static void free_included(struct api_included *included)
{
    mem_free(included->things);
    mem_free(included->order);
    mem_free(included->ends);
    mem_free(included->rows);
    absent_done(&included->comments);
    absent_done(&included->likers);
    buffer_done(&included->json);
    mem_free(included);
}

/* --- the items of the page --- */

/* Parses {"id":"ID". */
static uint64_t read_id(struct sl_slice json)
{
    const struct sl_slice begin = SL_SLICE("{\"id\":\"");
    const char *end;
    uint64_t id = 0;

    if (!sl_slice_starts_with(json, begin))
        return 0;
    json = sl_slice_from(json, begin.size);
    end = json.size > 0 ? memchr(json.data, '"', json.size) : NULL;
    return end && sl_id_parse(sl_slice(json.data, (size_t)(end - json.data)), &id) == 0 ? id : 0;
}

/* Parses {"id":"ID","user":{"id":"AUTHOR". */
static uint64_t read_author(struct sl_slice json)
{
    const struct sl_slice user = SL_SLICE(",\"user\":");
    const char *comma = json.size > 0 ? memchr(json.data, ',', json.size) : NULL;

    json = comma ? sl_slice_from(json, (size_t)(comma - json.data)) : SL_SLICE_NONE;
    return sl_slice_starts_with(json, user) ? read_id(sl_slice_from(json, user.size)) : 0;
}

/* -EBADMSG: an item has no id of this database. */
static int read_things(struct api_included *included, const struct api_request *request,
                       api_shown_fn shown)
{
    const struct sl_meta meta = api_meta(request);

    for (size_t i = 0; i < included->count; i++) {
        struct thing *thing = &included->things[i];
        const struct sl_slice json = shown(request, i);

        thing->id = read_id(json);
        thing->author = included->shows_posts ? read_author(json) : thing->id;
        if (thing->id == 0 || thing->author == 0 || sl_id_shard(thing->id) >= meta.shards)
            return -EBADMSG;
        thing->comments = included->rows + i * (COMMENTS_MAX + SL_INCLUDED_MAX);
        thing->likers = thing->comments + COMMENTS_MAX;
    }
    return 0;
}

static int absent_init(struct absent *absent, size_t room)
{
    absent->rows = mem_alloc(mem_array_size(room, sizeof(absent->rows[0])));
    absent->ids = mem_alloc(mem_array_size(room, sizeof(absent->ids[0])));
    return absent->rows && absent->ids ? 0 : -ENOMEM;
}

static int make(struct api_request *request, size_t count, api_shown_fn shown, api_step_fn then)
{
    const bool shows_posts = request->route->flags & API_SHOWS_POSTS;
    const size_t room = shows_posts ? count : 1; /* users have no rows */
    struct api_included *included = mem_zalloc(sizeof(*included));

    if (!included)
        return -ENOMEM;
    request->included = included;
    request->free_included = free_included;
    included->then = then;
    included->count = count;
    included->shows_posts = shows_posts;
    included->things = mem_zalloc(mem_array_size(count, sizeof(included->things[0])));
    included->order = mem_alloc(mem_array_size(count, sizeof(included->order[0])));
    included->ends = mem_alloc(mem_array_size(count, sizeof(included->ends[0])));
    included->rows = mem_zalloc(
        mem_array_size(room, (COMMENTS_MAX + SL_INCLUDED_MAX) * sizeof(included->rows[0])));
    if (!included->things || !included->order || !included->ends || !included->rows ||
        absent_init(&included->comments, room * COMMENTS_MAX) < 0 ||
        absent_init(&included->likers, room * SL_INCLUDED_MAX) < 0)
        return -ENOMEM;
    return read_things(included, request, shown);
}

/* --- the second round --- */

static int finish(struct api_request *request, const redisReply *reply)
{
    (void)reply;
    if (request->included->json.failed)
        return api_fail_for_memory(request);
    return request->included->then(request, NULL);
}

static void add_comment(struct api_included *included, struct row *row,
                        const struct sl_post_row *post)
{
    row->offset = included->json.size;
    sl_post_row_json(&included->json, post);
    row->size = included->json.size - row->offset;
}

static void add_liker(struct api_included *included, struct row *row,
                      const struct sl_user_row *user)
{
    row->offset = included->json.size;
    sl_user_row_json(&included->json, user);
    row->size = included->json.size - row->offset;
}

static int on_comments(struct api_request *request, size_t part, const redisReply *reply)
{
    struct api_included *included = request->included;
    struct sl_post_row post;
    struct failure failure;
    const uint32_t *items;
    size_t count;
    int r;

    items = sl_shard_calls_items(&included->comments.calls, part, &count);
    r = sl_posts_reply(reply, count, &failure);
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = sl_posts_at(reply, i, &post, &failure);
        if (r == 0)
            add_comment(included, included->comments.rows[items[i]], &post);
        else if (r == -ENOENT)
            r = 0;
    }
    return r < 0 ? api_fail(request, r, &failure) : 0;
}

static int take_liker(struct api_request *request, uint32_t item, const struct sl_user_row *row,
                      const struct failure *failure)
{
    struct api_included *included = request->included;

    (void)failure;
    if (row)
        add_liker(included, included->likers.rows[item], row);
    return 0;
}

static int on_likers(struct api_request *request, size_t part, const redisReply *reply)
{
    return api_each_user(request, &request->included->likers.calls, part, reply, take_liker);
}

static int on_elsewhere(struct api_request *request, size_t part, const redisReply *reply)
{
    const size_t comments = request->included->comments.calls.count;

    return part < comments ? on_comments(request, part, reply)
                           : on_likers(request, part - comments, reply);
}

static int ask_elsewhere(struct api_included *included, const struct sl_meta *meta, uint64_t reader,
                         struct failure *reterr)
{
    struct absent *likers = &included->likers;
    struct sl_user_ref *users;
    int r;

    r = sl_posts_calls(&included->comments.calls, meta, reader, included->comments.ids,
                       included->comments.count, reterr);
    if (r < 0)
        return r;
    users = mem_alloc(mem_array_size(likers->count + 1, sizeof(*users)));
    if (!users)
        return failure_set(reterr, -ENOMEM, "out of memory");
    for (size_t i = 0; i < likers->count; i++)
        users[i] = sl_user_by_id(likers->ids[i]);
    r = sl_users_calls(&likers->calls, meta, users, likers->count, reterr);
    mem_free(users);
    return r;
}

/* Sends both kinds of calls at once, and takes their memory. */
static int send_all(struct api_request *request, api_part_fn part, api_step_fn next)
{
    struct api_included *included = request->included;
    const struct sl_shard_calls *sets[] = {&included->comments.calls, &included->likers.calls};
    const size_t count = sets[0]->count + sets[1]->count;
    struct sl_call *calls = mem_alloc(mem_array_size(count, sizeof(*calls)));
    size_t used = 0;
    int r;

    if (!calls)
        return api_fail_for_memory(request);
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < sets[k]->count; i++) {
            calls[used++] = sets[k]->calls[i];
            sets[k]->calls[i] = SL_CALL_INIT;
        }
    }
    r = api_send_many(request, calls, count, part, next);
    for (size_t i = 0; i < count; i++)
        sl_call_done(&calls[i]);
    mem_free(calls);
    return r;
}

static int read_elsewhere(struct api_request *request, const redisReply *reply)
{
    const struct sl_meta meta = api_meta(request);
    struct api_included *included = request->included;
    struct failure failure;
    int r;

    if (included->comments.count + included->likers.count == 0)
        return finish(request, reply);
    r = ask_elsewhere(included, &meta, request->caller, &failure);
    return r < 0 ? api_fail(request, r, &failure) : send_all(request, on_elsewhere, finish);
}

/* --- the first round --- */

static void add_absent(struct absent *absent, struct row *row)
{
    absent->ids[absent->count] = row->id;
    absent->rows[absent->count++] = row;
}

static int take_comments(struct api_included *included, struct thing *thing,
                         const struct sl_included *of, struct failure *reterr)
{
    struct sl_post_row post;
    int r = 0;

    for (size_t i = 0; r == 0 && i < of->comment_count && i < COMMENTS_MAX; i++) {
        struct row *row = &thing->comments[thing->comment_count];

        r = sl_post_list_at(of->comments, i, &post, reterr);
        if (r < 0)
            break;
        row->id = post.id;
        thing->comment_count++;
        if (post.json.data)
            add_comment(included, row, &post);
        else
            add_absent(&included->comments, row);
    }
    return r;
}

static int take_likers(struct api_included *included, struct thing *thing,
                       const struct sl_included *of, struct failure *reterr)
{
    struct sl_listed_user liker;
    int r = 0;

    for (size_t i = 0; r == 0 && i < of->liker_count && i < SL_INCLUDED_MAX; i++) {
        struct row *row = &thing->likers[thing->liker_count];

        r = sl_user_list_at(of->likers, i, &liker, reterr);
        if (r < 0)
            break;
        row->id = liker.row.user.id;
        thing->liker_count++;
        if (liker.row.user.login.data)
            add_liker(included, row, &liker.row);
        else
            add_absent(&included->likers, row);
    }
    return r;
}

static int on_posts(struct api_request *request, size_t part, const redisReply *reply)
{
    struct api_included *included = request->included;
    const size_t begin = part > 0 ? included->ends[part - 1] : 0;
    const size_t count = included->ends[part] - begin;
    struct failure failure;
    int r;

    r = sl_included_reply(reply, count, &failure);
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct thing *thing = &included->things[included->order[begin + i]];
        struct sl_included of;

        r = sl_included_at(reply, i, &of, &failure);
        if (r < 0)
            break;
        thing->is_liked = of.is_liked;
        r = take_comments(included, thing, &of, &failure);
        if (r == 0)
            r = take_likers(included, thing, &of, &failure);
    }
    return r < 0 ? api_fail(request, r, &failure) : 0;
}

static int on_viewer(struct api_request *request, const redisReply *reply)
{
    struct api_included *included = request->included;
    struct failure failure;
    int r;

    r = sl_viewer_reply(reply, included->count, &failure);
    for (size_t i = 0; r == 0 && i < included->count; i++)
        r = sl_viewer_at(reply, i, &included->things[i].viewer, &failure);
    return r < 0 ? api_fail(request, r, &failure) : 0;
}

static int on_part(struct api_request *request, size_t part, const redisReply *reply)
{
    return part < request->included->part_count ? on_posts(request, part, reply)
                                                : on_viewer(request, reply);
}

/* Builds the calls about posts, each with up to SL_INCLUDED_POSTS_MAX of one shard. */
static int ask_about_posts(struct api_request *request, struct sl_call *calls,
                           struct failure *reterr)
{
    const struct sl_meta meta = api_meta(request);
    struct api_included *included = request->included;
    uint64_t posts[SL_INCLUDED_POSTS_MAX];
    size_t used = 0, count = 0;
    int r = 0;

    for (uint32_t shard = 0; r == 0 && shard < meta.shards; shard++) {
        for (size_t i = 0; r == 0 && i <= included->count; i++) {
            const bool is_end = i == included->count;

            if (count > 0 && (is_end || count == SL_INCLUDED_POSTS_MAX)) {
                r = sl_included_call(&calls[included->part_count], &meta, request->caller,
                                     &request->include, posts, count, reterr);
                included->ends[included->part_count++] = used;
                count = 0;
            }
            if (is_end || sl_id_shard(included->things[i].id) != shard)
                continue;
            posts[count++] = included->things[i].id;
            included->order[used++] = i;
        }
    }
    return r;
}

static int ask_about_users(struct api_request *request, struct sl_call *call,
                           struct failure *reterr)
{
    const struct sl_meta meta = api_meta(request);
    const struct api_included *included = request->included;
    uint64_t *users = mem_alloc(mem_array_size(included->count, sizeof(*users)));
    int r;

    if (!users)
        return failure_set(reterr, -ENOMEM, "out of memory");
    for (size_t i = 0; i < included->count; i++)
        users[i] = included->things[i].author;
    r = sl_viewer_call(call, &meta, request->caller, users, included->count, reterr);
    mem_free(users);
    return r;
}

static int ask(struct api_request *request)
{
    struct api_included *included = request->included;
    /* each call has at least one post */
    struct sl_call *calls = mem_zalloc(mem_array_size(included->count + 1, sizeof(*calls)));
    struct failure failure = {"out of memory"};
    size_t count = 0;
    int r = calls ? 0 : -ENOMEM;

    if (r == 0 && included->shows_posts)
        r = ask_about_posts(request, calls, &failure);
    count = included->part_count;
    if (r == 0 && request->includes_viewer)
        r = ask_about_users(request, &calls[count++], &failure);
    if (r == 0)
        r = api_send_many(request, calls, count, on_part, read_elsewhere);
    else
        r = api_fail(request, r, &failure);
    for (size_t i = 0; calls && i < included->count + 1; i++)
        sl_call_done(&calls[i]);
    mem_free(calls);
    return r;
}

int api_include(struct api_request *request, size_t count, api_shown_fn shown, api_step_fn then)
{
    int r;

    r = make(request, count, shown, then);
    if (r == -ENOMEM)
        return api_fail_for_memory(request);
    if (r < 0)
        return api_fail(request, r, &(struct failure){"what is shown has no id"});
    return count > 0 ? ask(request) : then(request, NULL);
}

/* --- the answer --- */

static void append_rows(struct buffer *json, const struct api_included *included, const char *name,
                        const struct row *rows, size_t count, size_t most)
{
    size_t shown = 0;

    buffer_append_format(json, "\"%s\":[", name);
    for (size_t i = 0; i < count && shown < most; i++) {
        if (rows[i].size == 0)
            continue;
        buffer_append_str(json, shown++ > 0 ? "," : "");
        buffer_append(json, included->json.data + rows[i].offset, rows[i].size);
    }
    buffer_append_char(json, ']');
}

static void append_viewer(struct buffer *json, const struct api_included *included,
                          const struct thing *thing)
{
    static const char *const texts[] = {"false", "true"};

    buffer_append_str(json, ",\"viewer\":{");
    if (included->shows_posts)
        buffer_append_format(json, "\"liked\":%s,", texts[thing->is_liked]);
    buffer_append_format(json, "\"following\":%s,\"hidden\":%s,\"muted\":%s}",
                         texts[thing->viewer.follows], texts[thing->viewer.hides],
                         texts[thing->viewer.mutes]);
}

bool api_included_is_liked(const struct api_request *request, size_t i)
{
    return request->included->things[i].is_liked;
}

void api_included_append(struct buffer *json, const struct api_request *request, size_t i,
                         struct sl_slice shown)
{
    const struct sl_included_wish *wish = &request->include;
    const struct api_included *included = request->included;
    const struct thing *thing = &included->things[i];

    buffer_append(json, shown.data, shown.size - 1); /* without the closing brace */
    if (request->includes_viewer)
        append_viewer(json, included, thing);
    if (wish->comments > 0 || wish->likers > 0) {
        buffer_append_str(json, ",\"included\":{");
        if (wish->comments > 0)
            append_rows(json, included, "comments", thing->comments, thing->comment_count,
                        wish->comments);
        if (wish->comments > 0 && wish->likers > 0)
            buffer_append_char(json, ',');
        if (wish->likers > 0)
            append_rows(json, included, "likes", thing->likers, thing->liker_count, wish->likers);
        buffer_append_char(json, '}');
    }
    buffer_append_char(json, '}');
}

/* --- a single item --- */

static struct sl_slice the_one(const struct api_request *request, size_t i)
{
    (void)i;
    return buffer_slice(&request->json);
}

static int answer_one(struct api_request *request, const redisReply *reply)
{
    struct buffer json = BUFFER_INIT;

    (void)reply;
    api_included_append(&json, request, 0, buffer_slice(&request->json));
    buffer_done(&request->json);
    request->json = json;
    return api_answer(request, request->status);
}

int api_answer_shown(struct api_request *request, int status)
{
    request->status = status;
    if (!api_wants_included(request))
        return api_answer(request, status);
    if (request->json.failed)
        return api_fail_for_memory(request);
    return api_include(request, 1, the_one, answer_one);
}
