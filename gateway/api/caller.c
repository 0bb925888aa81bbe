/* caller.c - checks whether the subject of the token is a user.
 *
 * Users are never deleted, so a subject that has the form of an id but is not a user comes from a
 * token for another database. That is too rare to check for each request. It is checked when
 * something is missing or belongs to another user. */
#include "gateway/api/engine.h"

#include <errno.h>

int api_refuse_caller(struct api_request *request)
{
    return api_refuse(request, 403, "no_subject", NULL,
                      "the token's sub is not a user of this database");
}

static int on_caller(struct api_request *request, const redisReply *reply)
{
    struct sl_user user;
    struct failure failure;
    int r = sl_user_find_reply(reply, &user, &failure);

    if (r == -ENOENT)
        return api_refuse_caller(request);
    if (r < 0)
        return api_fail(request, r, &failure);
    return request->refusal.status ? -EPROTO : api_answer(request, request->status);
}

static bool is_in_doubt(const struct api_request *request)
{
    int status = request->refusal.status;

    return request->acts && !request->caller_is_checked && (status == 404 || status == 403);
}

int api_check_caller(struct api_request *request)
{
    const struct sl_user_ref user = sl_user_by_id(request->caller);
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    request->caller_is_checked = true;
    r = sl_user_find_call(&request->call, &meta, &user, &failure);
    return api_send(request, r, &failure, on_caller);
}

int api_reconsider(struct api_request *request)
{
    return is_in_doubt(request) ? api_check_caller(request) : -EPROTO;
}
