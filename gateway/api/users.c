/* users.c - creates, reads and changes users; how far a user has read; followers and followed
 * users.
 *
 * A new user is read back by the id that the write returned, so that both operations have the same
 * answer. For the lists only the call is built here; list.h has the steps that answer them. */
#include <errno.h>
#include <inttypes.h>

#include "gateway/api/body.h"
#include "gateway/api/included.h"
#include "gateway/api/request.h"
#include "src/model/id.h"
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

/* --- change --- */

/* Reads [{"name","value"},...]; the slices belong to the body. */
static int read_fields(const json_t *array, struct sl_user_change *change,
                       struct sl_user_field room[static SL_USER_FIELDS_MAX],
                       struct http_refusal *refusal)
{
    int r = 0;

    change->changes_fields = true;
    change->fields = room;
    change->field_count = json_array_size(array); /* 0 for null */
    if (change->field_count > SL_USER_FIELDS_MAX)
        return http_refuse(refusal, 400, "bad_length", "fields", "fields has up to %d of them",
                           SL_USER_FIELDS_MAX);
    for (size_t i = 0; r == 0 && i < change->field_count; i++) {
        const json_t *field = json_array_get(array, i);
        const struct api_member members[] = {
            {"name", API_STRING, true, .ret_string = &room[i].name},
            {"value", API_STRING, true, .ret_string = &room[i].value},
        };

        if (!json_is_object(field))
            return http_refuse(refusal, 400, "bad_type", "fields",
                               "fields must contain only objects");
        r = api_members_read(field, "fields", members, 2, refusal);
    }
    return r;
}

/* Finds the member that the builder refuses. */
static const char *find_fault(const struct sl_meta *meta, const struct sl_user_ref *user,
                              const struct sl_user_change *change)
{
    const struct {
        const char *name;
        struct sl_user_change change;
    } tries[] = {
        {"name", {.name = change->name}},
        {"login", {.login = change->login}},
        {"bio", {.bio = change->bio}},
        {"avatar", {.avatar = change->avatar}},
    };
    struct sl_call call = SL_CALL_INIT;
    const char *name = "fields";

    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        if (sl_user_change_call(&call, meta, SL_SLICE_NONE, user, &tries[i].change, NULL) < 0)
            name = tries[i].name;
    }
    sl_call_done(&call);
    return name;
}

static int on_changed(struct api_request *request, const redisReply *reply)
{
    struct sl_written written;
    struct failure failure;
    int r = sl_write_reply(reply, &written, &failure);

    if (r == -EDQUOT)
        return api_refuse(request, 409, "too_many_logins", "login", "%s", failure.text);
    return r < 0 ? api_fail(request, r, &failure) : answer_user(request, &request->user, 200);
}

int users_change(struct api_request *request, const redisReply *reply)
{
    struct sl_user_field room[SL_USER_FIELDS_MAX];
    struct sl_user_change change = {.field_count = 0};
    const json_t *fields = NULL;
    const struct api_member members[] = {
        {"name", API_STRING, false, .ret_string = &change.name},
        {"login", API_STRING, false, .ret_string = &change.login},
        {"bio", API_STRING_OR_NULL, false, .ret_string = &change.bio},
        {"avatar", API_STRING_OR_NULL, false, .ret_string = &change.avatar},
        {"fields", API_ARRAY_OR_NULL, false, .ret_json = &fields},
    };
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    (void)reply;
    request->user = sl_user_by_id(request->caller);
    r = api_members_read(request->body, NULL, members, 5, &request->refusal);
    if (r == 0 && fields)
        r = read_fields(fields, &change, room, &request->refusal);
    if (r < 0)
        return r;
    r = sl_user_change_call(&request->call, &meta, SL_SLICE_NONE, &request->user, &change,
                            &failure);
    if (r == -EXDEV)
        return api_refuse(request, 422, "login_elsewhere", "login", "%s", failure.text);
    if (r == -EINVAL)
        return api_fail_member(request, r, &failure, find_fault(&meta, &request->user, &change));
    return api_send(request, r, &failure, on_changed);
}

/* --- how far the caller has read --- */

static int on_last_read(struct api_request *request, const redisReply *reply)
{
    uint64_t last_read = 0;
    struct failure failure;
    int r = sl_last_read_reply(reply, &last_read, &failure);

    if (r < 0)
        return api_fail(request, r, &failure);
    if (request->status == 204)
        return api_answer(request, 204);
    if (last_read == 0)
        buffer_append_str(&request->json, "{\"id\":null}");
    else
        buffer_append_format(&request->json, "{\"id\":\"%" PRIu64 "\"}", last_read);
    return api_answer(request, 200);
}

/* `id` 0: only reads. */
static int change_last_read(struct api_request *request, uint64_t id, int status)
{
    const struct sl_user_ref user = sl_user_by_id(request->caller);
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    request->status = status;
    r = sl_last_read_call(&request->call, &meta, &user, id, &failure);
    return api_send(request, r, &failure, on_last_read);
}

int users_last_read(struct api_request *request, const redisReply *reply)
{
    (void)reply;
    return change_last_read(request, 0, 200);
}

int users_keep_last_read(struct api_request *request, const redisReply *reply)
{
    struct sl_slice text = SL_SLICE_NONE;
    const struct api_member members[] = {{"id", API_STRING, true, .ret_string = &text}};
    uint64_t id = 0;
    int r;

    (void)reply;
    r = api_members_read(request->body, NULL, members, 1, &request->refusal);
    if (r < 0)
        return r;
    if (sl_id_parse(text, &id) < 0)
        return api_refuse(request, 400, "bad_request", "id", "not an id");
    return change_last_read(request, id, 204);
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
