/* users.c - make a user, read one, and who follows whom.
 *
 * A new user is read back by the id that the write returned, so that making one and reading one are
 * answered alike. For the lists only the call is built here; list.h has the steps that answer them.
 */
#include <inttypes.h>

#include "gateway/api/body.h"
#include "gateway/api/included.h"
#include "gateway/api/request.h"
#include "src/social/follows.h"
#include "src/social/row_json.h"

/* --- read --- */

static int on_user(struct api_request *request, const redisReply *reply)
{
    struct sl_user_row row;
    struct failure failure;
    int r;

    r = sl_users_reply(reply, 1, &failure);
    if (r == 0)
        r = sl_users_at(reply, 0, &row, &failure);
    if (r < 0)
        return api_fail(request, r, &failure);
    sl_user_row_json(&request->json, &row);
    return api_answer_shown(request, request->status);
}

static int answer_user(struct api_request *request, const struct sl_user_ref *user, int status)
{
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    request->status = status;
    r = sl_users_calls(&request->calls, &meta, user, 1, &failure);
    return api_send_only(request, r, &failure, on_user);
}

int users_read(struct api_request *request, const redisReply *reply)
{
    (void)reply;
    return answer_user(request, &request->user, 200);
}

int users_read_many(struct api_request *request, const redisReply *reply)
{
    (void)reply;
    return api_list_asked_users(request);
}

/* --- create --- */

static int on_created(struct api_request *request, const redisReply *reply)
{
    struct sl_user_ref user;
    int r;

    r = api_take_written(request, reply);
    if (r < 0)
        return r;
    buffer_append_format(&request->headers, "Location: /v1/users/%" PRIu64 "\r\n", request->id);
    user = sl_user_by_id(request->id);
    return answer_user(request, &user, 201);
}

int users_create(struct api_request *request, const redisReply *reply)
{
    struct sl_slice login = SL_SLICE_NONE, name = SL_SLICE_NONE;
    const struct api_member members[] = {
        {"login", API_STRING, true, .ret_string = &login},
        {"name", API_STRING, false, .ret_string = &name},
    };
    const struct sl_meta meta = api_meta(request);
    char room[SL_LOGIN_SIZE];
    struct sl_slice folded;
    struct failure failure;
    int r;

    (void)reply;
    r = api_members_read(request->body, NULL, members, 2, &request->refusal);
    if (r < 0)
        return r;
    r = sl_user_create_call(&request->call, &meta, request->request_id, login, name, &failure);
    if (r == -EINVAL)
        return api_fail_member(request, r, &failure,
                               sl_login_fold(login, room, &folded, NULL) < 0 ? "login" : "name");
    return api_send(request, r, &failure, on_created);
}

/* --- lists --- */

int users_followers(struct api_request *request, const redisReply *reply)
{
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    (void)reply;
    request->page.is_bare = api_wants_bare(request);
    r = sl_follower_list_call(&request->call, &meta, &request->user, &request->page, &failure);
    return api_send(request, r, &failure, api_list_on_users);
}

int users_following(struct api_request *request, const redisReply *reply)
{
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    (void)reply;
    request->page.is_bare = api_wants_bare(request);
    r = sl_following_list_call(&request->call, &meta, &request->user, &request->page, &failure);
    return api_send(request, r, &failure, api_list_on_users);
}
