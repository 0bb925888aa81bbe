/* likes.c - likes and unlikes posts, and lists the posts that the caller likes.
 *
 * A like is stored with the post. What a user likes is also in a list of the user's own, which is
 * changed first if the two are in different shards. So the list may contain a post too many: the
 * posts of a page are read as usual, and asked whether they are liked. */
#include "src/social/likes.h"

#include "base/alloc.h"
#include "gateway/api/request.h"
#include "src/model/id.h"

typedef int (*build_fn)(struct sl_call *call, const struct sl_meta *meta,
                        struct sl_slice request_id, const struct sl_user_ref *user, uint64_t post,
                        struct failure *reterr);

static int change(struct api_request *request, build_fn build)
{
    const struct sl_user_ref user = sl_user_by_id(request->caller);
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    r = build(&request->call, &meta, SL_SLICE_NONE, &user, request->post, &failure);
    return api_send(request, r, &failure, api_answer_written);
}

typedef int (*note_fn)(struct sl_call *call, const struct sl_meta *meta,
                       const struct sl_user_ref *user, uint64_t post, struct failure *reterr);

/* The post's shard knows only its own users: others are looked up first, which also records the
 * like. */
static int change_as_user(struct api_request *request, build_fn build, note_fn note,
                          api_step_fn on_caller)
{
    const struct sl_user_ref user = sl_user_by_id(request->caller);
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    if (sl_id_shard(request->caller) == sl_id_shard(request->post))
        return change(request, build);
    r = note(&request->call, &meta, &user, request->post, &failure);
    return api_send(request, r, &failure, on_caller);
}

static int change_if_found(struct api_request *request, const redisReply *reply, build_fn build)
{
    struct sl_user user;
    struct failure failure;
    int r = sl_user_find_reply(reply, &user, &failure);

    return r < 0 ? api_fail(request, r, &failure) : change(request, build);
}

static int on_liker(struct api_request *request, const redisReply *reply)
{
    return change_if_found(request, reply, sl_like_call);
}

static int on_unliker(struct api_request *request, const redisReply *reply)
{
    return change_if_found(request, reply, sl_unlike_call);
}

int likes_like(struct api_request *request, const redisReply *reply)
{
    (void)reply;
    return change_as_user(request, sl_like_call, sl_like_note_call, on_liker);
}

int likes_unlike(struct api_request *request, const redisReply *reply)
{
    (void)reply;
    return change_as_user(request, sl_unlike_call, sl_unlike_note_call, on_unliker);
}

/* --- the posts that the caller likes --- */

static int on_liked(struct api_request *request, const redisReply *reply)
{
    struct sl_liked_post liked = {0};
    struct failure failure = {"out of memory"};
    uint64_t *posts = NULL;
    size_t count;
    int r;

    r = sl_liked_list_reply(reply, &count, &failure);
    if (r < 0)
        return api_fail(request, r, &failure);
    posts = mem_alloc(mem_array_size(count + 1, sizeof(*posts)));
    if (!posts)
        return api_fail_for_memory(request);
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = sl_liked_list_at(reply, i, &liked, &failure);
        posts[i] = liked.post;
    }
    r = r < 0 ? api_fail(request, r, &failure)
              : api_list_answer_liked(request, posts, count, liked.position);
    mem_free(posts);
    return r;
}

int likes_of_caller(struct api_request *request, const redisReply *reply)
{
    const struct sl_user_ref user = sl_user_by_id(request->caller);
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    (void)reply;
    r = sl_liked_list_call(&request->call, &meta, &user, &request->page, &failure);
    return api_send(request, r, &failure, on_liked);
}
