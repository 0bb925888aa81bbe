/* likes.c - like a post, or do so no more; who likes it. */
#include "src/likes.h"

#include "gateway/api/request.h"
#include "src/id.h"

static int like(struct api_request *request)
{
    const struct sl_user_ref user = sl_user_by_id(request->subject);
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    r = sl_like_call(&request->call, &meta, SL_SLICE_NONE, &user, request->post, &failure);
    return api_send(request, r, &failure, api_answer_written);
}

static int on_subject(struct api_request *request, const redisReply *reply)
{
    struct sl_user user;
    struct failure failure;
    int r = sl_user_find_reply(reply, &user, &failure);

    return r < 0 ? api_fail(request, r, &failure) : like(request);
}

/* The post's shard knows its own users only: those of others are looked up first. */
int likes_like(struct api_request *request, const redisReply *reply)
{
    const struct sl_user_ref user = sl_user_by_id(request->subject);
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    (void)reply;
    if (sl_id_shard(request->subject) == sl_id_shard(request->post))
        return like(request);
    r = sl_user_find_call(&request->call, &meta, &user, &failure);
    return api_send(request, r, &failure, on_subject);
}

int likes_unlike(struct api_request *request, const redisReply *reply)
{
    const struct sl_user_ref user = sl_user_by_id(request->subject);
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    (void)reply;
    r = sl_unlike_call(&request->call, &meta, SL_SLICE_NONE, &user, request->post, &failure);
    return api_send(request, r, &failure, api_answer_written);
}

int likes_list(struct api_request *request, const redisReply *reply)
{
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    (void)reply;
    r = sl_like_list_call(&request->call, &meta, request->subject, request->post, &request->page,
                          &failure);
    return api_send(request, r, &failure, api_list_on_users);
}
