/* posts.c - creates, reads and deletes posts; lists the posts of a user and the comments of a post.
 *
 * A new post is read back, so that its author gets the same answer as any reader; for a repeated
 * Idempotency-Key that may be a post that was deleted since. For a reply to a post in another shard
 * the author of that post is needed: the builder reports that, and the author is looked up. Posts
 * that Redis lacks are read from the archive, if there is one. */
#include "src/social/posts.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/api/body.h"
#include "gateway/api/included.h"
#include "gateway/api/request.h"
#include "src/archive/archived.h"
#include "src/model/id.h"
#include "src/model/text.h"
#include "src/social/post_rows.h"
#include "src/social/row_json.h"

/* --- read --- */

static int fail_for_post(struct api_request *request, int r, const struct failure *failure)
{
    if (r == -ENOENT && request->status == 201)
        return api_refuse(request, 410, "gone", NULL, "this was posted before, and deleted since");
    return api_fail(request, r, failure);
}

static int no_such_post(struct api_request *request)
{
    struct failure failure;
    int r = failure_set(&failure, -ENOENT, "there is no post %" PRIu64, request->id);

    return fail_for_post(request, r, &failure);
}

/* The value of the only post. */
static struct sl_slice known_value(const struct api_request *request)
{
    return request->known_count > 0 ? request->known[0].value : SL_SLICE_NONE;
}

/* Answers with the only row of the reply. */
static int answer_row(struct api_request *request, const redisReply *reply, bool is_archived);

static int on_archived_row(struct api_request *request, const redisReply *reply)
{
    return answer_row(request, reply, true);
}

static int on_archived_post(struct api_request *request, const redisReply *reply)
{
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    (void)reply;
    if (request->archived.count == 0)
        return no_such_post(request);
    r = sl_archived_posts_calls(&request->calls, &meta, request->caller, request->archived.posts, 1,
                                &failure);
    return api_send_only(request, r, &failure, on_archived_row);
}

static int answer_row(struct api_request *request, const redisReply *reply, bool is_archived)
{
    struct sl_post_row row;
    struct failure failure;
    int r;

    r = sl_posts_reply(reply, 1, &failure);
    if (r == 0)
        r = sl_posts_at(reply, 0, &row, &failure);
    if (r == -ENOENT && !is_archived && known_value(request).data)
        api_note_stale(request);
    if (r == -ENOENT && !is_archived && api_has_archive(request))
        return api_find_archived(request, &request->id, 1, on_archived_post);
    if (r < 0)
        return fail_for_post(request, r, &failure);
    if (!sl_cached_post_json(&request->json, &row, known_value(request)))
        return api_fail(request, -EBADMSG, &(struct failure){"a post lacks what is not cached"});
    api_keep_post(request, &row, is_archived ? SL_CACHED_FROM_ARCHIVE : SL_CACHED_FROM_REDIS);
    return api_answer_shown(request, request->status);
}

static int on_post(struct api_request *request, const redisReply *reply)
{
    return answer_row(request, reply, false);
}

static int ask_for_post(struct api_request *request, const struct sl_cache_item *item)
{
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    request->id = item->id;
    r = sl_cached_posts_calls(&request->calls, &meta, request->caller, item, 1, &failure);
    return api_send_only(request, r, &failure, on_post);
}

static int answer_post(struct api_request *request, uint64_t post, int status)
{
    const struct sl_cache_item item = {SL_CACHE_POST, post, SL_SLICE_NONE};

    request->status = status;
    return ask_for_post(request, &item);
}

static int on_known(struct api_request *request, const redisReply *reply)
{
    (void)reply;
    return ask_for_post(request, request->known);
}

int posts_read(struct api_request *request, const redisReply *reply)
{
    (void)reply;
    request->status = 200;
    return api_ask_cache(request, SL_CACHE_POST, &request->post, 1, on_known);
}

int posts_read_many(struct api_request *request, const redisReply *reply)
{
    (void)reply;
    return api_list_asked_posts(request);
}

/* --- create --- */

static int read_point(struct sl_post *post, const json_t *geo, struct http_refusal *refusal)
{
    const struct api_member members[] = {
        {"lon", API_NUMBER, true, .ret_number = &post->lon},
        {"lat", API_NUMBER, true, .ret_number = &post->lat},
    };

    post->has_point = true;
    return api_members_read(geo, "geo", members, 2, refusal);
}

static int read_box(struct sl_post_place *place, const json_t *box, struct http_refusal *refusal)
{
    double *const corners[] = {&place->west, &place->south, &place->east, &place->north};

    place->has_box = true;
    if (json_array_size(box) != 4)
        goto refuse;
    for (size_t i = 0; i < 4; i++) {
        const json_t *corner = json_array_get(box, i);

        if (!json_is_number(corner))
            goto refuse;
        *corners[i] = json_number_value(corner);
    }
    return 0;
refuse:
    return http_refuse(refusal, 400, "bad_type", "place.bbox",
                       "place.bbox is not four numbers: west, south, east, north");
}

static int read_place(struct sl_post_place *place, const json_t *json, struct http_refusal *refusal)
{
    const json_t *box = NULL;
    const struct api_member members[] = {
        {"name", API_STRING, false, .ret_string = &place->name},
        {"country", API_STRING, false, .ret_string = &place->country},
        {"bbox", API_ARRAY, false, .ret_json = &box},
    };
    int r;

    r = api_members_read(json, "place", members, 3, refusal);
    return r == 0 && box ? read_box(place, box, refusal) : r;
}

/* Authors of referenced posts in other shards than that of the writer, which cannot look them
 * up. */
struct author {
    char user[SL_USER_ID_TEXT_MAX], login[SL_LOGIN_SIZE];
    size_t user_size, login_size;
    bool is_restricted; /* the post is not public */
    bool is_looked_up;
};

enum { REFERENCE_COUNT = 3 };

/* The state of a request that creates a post. */
struct writing {
    struct author authors[REFERENCE_COUNT];
    struct sl_slice urls[SL_POST_URLS_MAX];
    struct buffer media;    /* serialized */
    struct buffer audience; /* with ids; empty: as it was given */
    uint64_t ids[];         /* of the logins in it */
};

static void free_writing(void *state)
{
    struct writing *writing = state;

    buffer_done(&writing->media);
    buffer_done(&writing->audience);
    mem_free(writing);
}

static int read_urls(struct sl_post *post, const json_t *urls, struct writing *writing,
                     struct http_refusal *refusal)
{
    const size_t count = json_array_size(urls);

    if (count > SL_POST_URLS_MAX)
        return http_refuse(refusal, 400, "bad_length", "urls", "urls has up to %d links",
                           SL_POST_URLS_MAX);
    for (size_t i = 0; i < count; i++) {
        const json_t *url = json_array_get(urls, i);

        if (!json_is_string(url))
            return http_refuse(refusal, 400, "bad_type", "urls", "urls must contain only strings");
        writing->urls[i] = sl_slice(json_string_value(url), json_string_length(url));
    }
    post->urls = writing->urls;
    post->url_count = count;
    return 0;
}

static int dump_to_buffer(const char *data, size_t size, void *buffer)
{
    buffer_append(buffer, data, size);
    return 0;
}

/* Each must be an object with a link `url`; other members are opaque. */
static int read_media(struct sl_post *post, const json_t *media, struct writing *writing,
                      struct http_refusal *refusal)
{
    struct failure failure;

    for (size_t i = 0; i < json_array_size(media); i++) {
        const json_t *url = json_object_get(json_array_get(media, i), "url");

        if (!json_is_string(url))
            return http_refuse(refusal, 400, "bad_type", "media",
                               "media must contain only objects with a url");
        if (sl_text_check_link(sl_slice(json_string_value(url), json_string_length(url)),
                               "the url of a medium", &failure) < 0)
            return http_refuse(refusal, 400, "bad_request", "media", "%s", failure.text);
    }
    buffer_clear(&writing->media);
    json_dump_callback(media, dump_to_buffer, &writing->media, JSON_COMPACT);
    post->media = buffer_slice(&writing->media);
    return writing->media.failed ? -ENOMEM : 0;
}

/* The slices of `ret_post` belong to the body and to `writing`. */
static int read_post(const json_t *body, struct sl_post *ret_post, struct writing *writing,
                     struct http_refusal *refusal)
{
    const json_t *geo = NULL, *place = NULL, *urls = NULL, *media = NULL;
    const struct api_member members[] = {
        {"text", API_STRING, true, .ret_string = &ret_post->text},
        {"lang", API_STRING, false, .ret_string = &ret_post->lang},
        {"geo", API_OBJECT, false, .ret_json = &geo},
        {"place", API_OBJECT, false, .ret_json = &place},
        {"reply_to", API_STRING, false, .ret_string = &ret_post->reply_to.post},
        {"repost_of", API_STRING, false, .ret_string = &ret_post->repost_of.post},
        {"quote_of", API_STRING, false, .ret_string = &ret_post->quote_of.post},
        {"urls", API_ARRAY, false, .ret_json = &urls},
        {"media", API_ARRAY, false, .ret_json = &media},
        {"source", API_STRING, false, .ret_string = &ret_post->source},
        {"audience", API_STRING, false, .ret_string = &ret_post->audience},
    };
    int r;

    r = api_members_read(body, NULL, members, sizeof(members) / sizeof(members[0]), refusal);
    if (r == 0 && geo)
        r = read_point(ret_post, geo, refusal);
    if (r == 0 && place)
        r = read_place(&ret_post->place, place, refusal);
    if (r == 0 && urls)
        r = read_urls(ret_post, urls, writing, refusal);
    if (r == 0 && media)
        r = read_media(ret_post, media, writing, refusal);
    if (writing->audience.size > 0)
        ret_post->audience = buffer_slice(&writing->audience);
    return r;
}

static int on_created(struct api_request *request, const redisReply *reply)
{
    int r;

    r = api_take_written(request, reply);
    if (r < 0)
        return r;
    buffer_append_format(&request->headers, "Location: /v1/posts/%" PRIu64 "\r\n", request->id);
    return answer_post(request, request->id, 201);
}

static struct sl_post_reference *reference_of(struct sl_post *post, size_t i)
{
    struct sl_post_reference *const references[REFERENCE_COUNT] = {
        &post->reply_to, &post->repost_of, &post->quote_of};

    return references[i];
}

static void fill_in_authors(struct sl_post *post, const struct author *authors)
{
    for (size_t i = 0; i < REFERENCE_COUNT; i++) {
        struct sl_post_reference *reference = reference_of(post, i);

        if (!authors[i].is_looked_up)
            continue;
        reference->is_restricted = authors[i].is_restricted;
        if (!reference->is_restricted) {
            reference->user = sl_slice(authors[i].user, authors[i].user_size);
            reference->login = sl_slice(authors[i].login, authors[i].login_size);
        }
        post->is_comment = post->is_comment || reference == &post->reply_to;
    }
}

static int on_author(struct api_request *request, const redisReply *reply);

/* The first reference, from `*index` on, to a post in another shard than `shard` whose author is
 * not known. There is one when the builder returned -EXDEV. */
static uint64_t find_stranger(struct sl_post *post, uint32_t shard, size_t *index)
{
    uint64_t id = 0;

    for (; *index < REFERENCE_COUNT; ++*index) {
        const struct sl_post_reference *reference = reference_of(post, *index);

        if (reference->post.data && !reference->user.data && !reference->is_restricted &&
            sl_id_parse(reference->post, &id) == 0 && sl_id_shard(id) != shard)
            break;
    }
    assert(*index < REFERENCE_COUNT);
    return id;
}

/* Finds the member that the builder refuses, by trying each one alone with a valid text. */
static const char *find_fault(const struct sl_meta *meta, const struct sl_user_ref *writer,
                              const struct sl_post *post)
{
    const struct sl_slice text = SL_SLICE("text");
    const struct {
        const char *name;
        struct sl_post post;
    } tries[] = {
        {"lang", {.text = text, .lang = post->lang}},
        {"geo", {.text = text, .has_point = post->has_point, .lon = post->lon, .lat = post->lat}},
        {"place", {.text = text, .place = post->place}},
        {"reply_to", {.text = text, .reply_to = post->reply_to, .is_comment = post->is_comment}},
        {"repost_of", {.text = text, .repost_of = post->repost_of}},
        {"quote_of", {.text = text, .quote_of = post->quote_of}},
        {"urls", {.text = text, .urls = post->urls, .url_count = post->url_count}},
        {"media", {.text = text, .media = post->media}},
        {"source", {.text = text, .source = post->source}},
        {"audience", {.text = text, .audience = post->audience}},
    };
    struct sl_call call = SL_CALL_INIT;
    const char *name = "text";

    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        if (sl_post_call(&call, meta, SL_SLICE_NONE, writer, &tries[i].post, NULL) == -EINVAL)
            name = tries[i].name;
    }
    sl_call_done(&call);
    return name;
}

/* Creates the post, or looks up the next author. */
static int write_post(struct api_request *request)
{
    const struct sl_user_ref writer = sl_user_by_id(request->caller);
    const struct sl_meta meta = api_meta(request);
    struct writing *writing = request->state;
    struct sl_post post = {0};
    struct failure failure;
    uint64_t stranger;
    int r;

    r = read_post(request->body, &post, writing, &request->refusal);
    if (r < 0)
        return r == -ENOMEM ? api_fail_for_memory(request) : r;
    fill_in_authors(&post, writing->authors);
    r = sl_post_call(&request->call, &meta, request->request_id, &writer, &post, &failure);
    if (r == -EINVAL)
        return api_fail_member(request, r, &failure, find_fault(&meta, &writer, &post));
    if (r != -EXDEV)
        return api_send(request, r, &failure, on_created);
    stranger = find_stranger(&post, sl_id_shard(request->caller), &request->index);
    r = sl_post_author_call(&request->call, &meta, request->caller, stranger, &failure);
    return api_send(request, r, &failure, on_author);
}

static size_t keep(struct sl_slice text, char *room, size_t size)
{
    size_t kept = text.size < size ? text.size : size;

    memcpy(room, text.data, kept);
    return kept;
}

static int on_author(struct api_request *request, const redisReply *reply)
{
    struct writing *writing = request->state;
    struct author *author = &writing->authors[request->index];
    struct sl_post_reference reference = {.is_restricted = false};
    struct failure failure;
    int r;

    r = sl_post_author_reply(reply, &reference, &failure);
    if (r < 0)
        return api_fail(request, r, &failure);
    author->is_looked_up = true;
    author->is_restricted = reference.is_restricted;
    if (!reference.is_restricted) {
        author->user_size = keep(reference.user, author->user, sizeof(author->user));
        author->login_size = keep(reference.login, author->login, sizeof(author->login));
    }
    return write_post(request);
}

/* --- logins in the audience --- */

static int take_named(struct api_request *request, uint32_t item, const struct sl_user_row *row,
                      const struct failure *failure)
{
    struct writing *writing = request->state;

    if (!row)
        return api_fail_member(request, -EINVAL, failure, "audience");
    writing->ids[item] = row->user.id;
    return 0;
}

static int on_named(struct api_request *request, size_t part, const redisReply *reply)
{
    return api_each_user(request, &request->calls, part, reply, take_named);
}

static struct sl_slice given_audience(const struct api_request *request)
{
    const json_t *audience = json_object_get(request->body, "audience");

    return json_is_string(audience)
               ? sl_slice(json_string_value(audience), json_string_length(audience))
               : SL_SLICE_NONE;
}

static int on_all_named(struct api_request *request, const redisReply *reply)
{
    struct writing *writing = request->state;

    (void)reply;
    sl_audience_with_ids(&writing->audience, given_audience(request), writing->ids);
    return writing->audience.failed ? api_fail_for_memory(request) : write_post(request);
}

static int find_named(struct api_request *request, const struct sl_slice *logins, size_t count)
{
    const struct sl_meta meta = api_meta(request);
    struct failure failure = {"out of memory"};
    struct sl_user_ref *users;
    int r = -ENOMEM;

    users = mem_alloc(mem_array_size(count, sizeof(*users)));
    for (size_t i = 0; users && i < count; i++)
        users[i] = sl_user_by_login(logins[i]);
    if (users)
        r = sl_users_calls(&request->calls, &meta, users, count, &failure);
    mem_free(users);
    if (r == -EINVAL)
        return api_fail_member(request, r, &failure, "audience");
    return api_send_all(request, r, &failure, on_named, on_all_named);
}

int posts_create(struct api_request *request, const redisReply *reply)
{
    struct sl_slice logins[SL_AUDIENCE_USERS_MAX];
    struct writing *writing;
    struct failure failure;
    size_t count = 0;
    int r;

    (void)reply;
    r = sl_audience_logins(given_audience(request), logins, &count, &failure);
    if (r < 0)
        return api_fail_member(request, r, &failure, "audience");
    request->state = writing = mem_zalloc(sizeof(*writing) + count * sizeof(writing->ids[0]));
    if (!writing)
        return api_fail_for_memory(request);
    request->free_state = free_writing;
    return count > 0 ? find_named(request, logins, count) : write_post(request);
}

/* --- delete --- */

/* A post that does not exist counts as deleted. */
static int answer_deleted(struct api_request *request, bool was_there)
{
    request->status = 204;
    return was_there ? api_answer(request, 204) : api_check_caller(request);
}

static int on_deleted_archived(struct api_request *request, const redisReply *reply)
{
    struct sl_written written;
    struct failure failure;
    int r;

    r = sl_write_reply(reply, &written, &failure);
    if (r == 0)
        api_forget_post(request, request->post);
    return r < 0 && r != -ENOENT ? api_fail(request, r, &failure) : answer_deleted(request, r == 0);
}

static int on_archived_to_delete(struct api_request *request, const redisReply *reply)
{
    const struct sl_user_ref user = sl_user_by_id(request->caller);
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    (void)reply;
    if (request->archived.count == 0)
        return answer_deleted(request, false);
    r = sl_delete_archived_call(&request->call, &meta, SL_SLICE_NONE, &user, request->post,
                                request->archived.posts[0].json, &failure);
    return api_send(request, r, &failure, on_deleted_archived);
}

static int on_deleted(struct api_request *request, const redisReply *reply)
{
    struct sl_written written;

    if (api_has_archive(request) && sl_write_reply(reply, &written, NULL) == -ENOENT)
        return api_find_archived(request, &request->post, 1, on_archived_to_delete);
    return on_deleted_archived(request, reply);
}

int posts_delete(struct api_request *request, const redisReply *reply)
{
    const struct sl_user_ref user = sl_user_by_id(request->caller);
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    (void)reply;
    r = sl_delete_call(&request->call, &meta, SL_SLICE_NONE, &user, request->post, &failure);
    return api_send(request, r, &failure, on_deleted);
}

/* --- posts of a user --- */

int posts_of_user(struct api_request *request, const redisReply *reply)
{
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    (void)reply;
    request->page.is_bare = api_wants_bare(request);
    r = sl_post_list_call(&request->call, &meta, request->caller, &request->user, &request->page,
                          &failure);
    return api_send(request, r, &failure, api_list_on_profile);
}
