/* likes.c - like a post, or do so no more. */
#include "src/social/likes.h"

#include "gateway/api/request.h"
#include "src/model/id.h"

typedef int (*build_fn)(struct sl_call *call, const struct sl_meta *meta,
                        struct sl_slice request_id, const struct sl_user_ref *user, uint64_t post,
                        struct failure *reterr);

static int change(struct api_request *request, build_fn build)
{
    const struct sl_user_ref user = sl_user_by_id(request->subject);
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    r = build(&request->call, &meta, SL_SLICE_NONE, &user, request->post, &failure);
    return api_send(request, r, &failure, api_answer_written);
}

/* The post's shard knows its own users only: those of others are looked up first. */
static int change_as_user(struct api_request *request, build_fn build, api_step_fn on_subject)
{
    const struct sl_user_ref user = sl_user_by_id(request->subject);
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    if (sl_id_shard(request->subject) == sl_id_shard(request->post))
        return change(request, build);
    r = sl_user_find_call(&request->call, &meta, &user, &failure);
    return api_send(request, r, &failure, on_subject);
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
    return change_as_user(request, sl_like_call, on_liker);
}

int likes_unlike(struct api_request *request, const redisReply *reply)
{
    (void)reply;
    return change_as_user(request, sl_unlike_call, on_unliker);
}
