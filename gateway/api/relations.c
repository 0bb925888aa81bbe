/* relations.c - follows, hides from and mutes users, and ends it.
 *
 * Users in another shard than the caller's are looked up first. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/api/body.h"
#include "gateway/api/request.h"
#include "src/social/follows.h"
#include "src/social/privacy.h"

typedef int (*relation_call_fn)(struct sl_call *call, const struct sl_meta *meta,
                                struct sl_slice request_id, const struct sl_user_ref *user,
                                const struct sl_user *target, struct failure *reterr);

/* --- one target --- */

static int change(struct api_request *request, relation_call_fn build, const struct sl_user *target)
{
    const struct sl_user_ref user = sl_user_by_id(request->caller);
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    r = build(&request->call, &meta, SL_SLICE_NONE, &user, target, &failure);
    return api_send(request, r, &failure, api_answer_written);
}

static int change_found(struct api_request *request, relation_call_fn build,
                        const redisReply *reply)
{
    struct sl_user target;
    struct failure failure;
    int r = sl_user_find_reply(reply, &target, &failure);

    return r < 0 ? api_fail(request, r, &failure) : change(request, build, &target);
}

/* `then` continues with the reply to the look-up. */
static int begin(struct api_request *request, relation_call_fn build, api_step_fn then)
{
    const struct sl_user_ref user = sl_user_by_id(request->caller);
    const struct sl_user target = {.id = request->user.id, .login = request->user.login};
    const struct sl_meta meta = api_meta(request);
    bool needs_lookup = false;
    struct failure failure;
    int r;

    r = sl_follow_needs_lookup(&meta, &user, &request->user, &needs_lookup, &failure);
    if (r == 0 && !needs_lookup)
        return change(request, build, &target);
    if (r == 0)
        r = sl_user_find_call(&request->call, &meta, &request->user, &failure);
    return api_send(request, r, &failure, then);
}

#define RELATION(name)                                                                             \
    static int on_found_for_##name(struct api_request *request, const redisReply *reply)           \
    {                                                                                              \
        return change_found(request, sl_##name##_call, reply);                                     \
    }                                                                                              \
    int relations_##name(struct api_request *request, const redisReply *reply)                     \
    {                                                                                              \
        (void)reply;                                                                               \
        return begin(request, sl_##name##_call, on_found_for_##name);                              \
    }

RELATION(follow)
RELATION(unfollow)
RELATION(hide)
RELATION(unhide)
RELATION(mute)
RELATION(unmute)

/* --- the users from whom the caller hides, and those muted --- */

typedef int (*list_call_fn)(struct sl_call *call, const struct sl_meta *meta,
                            const struct sl_user_ref *user, const struct sl_page *page,
                            struct failure *reterr);

static int list(struct api_request *request, list_call_fn build)
{
    const struct sl_user_ref user = sl_user_by_id(request->caller);
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    request->page.is_bare = api_wants_bare(request);
    r = build(&request->call, &meta, &user, &request->page, &failure);
    return api_send(request, r, &failure, api_list_on_users);
}

int relations_hidden(struct api_request *request, const redisReply *reply)
{
    (void)reply;
    return list(request, sl_hidden_list_call);
}

int relations_muted(struct api_request *request, const redisReply *reply)
{
    (void)reply;
    return list(request, sl_muted_list_call);
}

/* --- many targets --- */

struct target {
    struct sl_slice given;
    struct sl_user_ref ref; /* neither id nor login: cannot be a user */
    struct sl_user user;    /* for the builder; its slices point into this struct, or to the body */
    char login[SL_LOGIN_SIZE];
    char name[SL_NAME_MAX];
};

struct batch {
    bool unfollows;
    size_t count;
    size_t absent_count;
    size_t absent[SL_FOLLOW_MAX]; /* indices of the targets to be looked up in other shards */
    struct target targets[];
};

static int on_changed(struct api_request *request, const redisReply *reply)
{
    struct batch *batch = request->state;
    struct buffer *json = &request->json;
    struct failure failure;
    bool is_repeated;
    int r;

    r = sl_write_many_reply(reply, batch->count, &is_repeated, &failure);
    if (r < 0)
        return api_fail(request, r, &failure);
    if (is_repeated)
        api_say_replayed(request);
    buffer_append_str(json, "{\"results\":[");
    for (size_t i = 0; i < batch->count; i++) {
        uint64_t id = 0;

        r = sl_write_many_at(reply, i, &id, &failure);
        buffer_append_str(json, i > 0 ? ",{\"user\":" : "{\"user\":");
        buffer_append_json_string(json, batch->targets[i].given);
        buffer_append_format(json, ",\"following\":%s,\"changed\":%s",
                             r == 0 && !batch->unfollows ? "true" : "false", id ? "true" : "false");
        if (r < 0) {
            buffer_append_str(json, ",\"error\":");
            api_error_json(json, r, &failure);
        }
        buffer_append_char(json, '}');
    }
    buffer_append_str(json, "]}");
    return api_answer(request, 200);
}

static int change_all(struct api_request *request, const redisReply *reply)
{
    const struct sl_user_ref user = sl_user_by_id(request->caller);
    const struct sl_meta meta = api_meta(request);
    struct batch *batch = request->state;
    struct failure failure = {"out of memory"};
    struct sl_user *targets;
    int r = -ENOMEM;

    (void)reply;
    targets = mem_alloc(mem_array_size(batch->count, sizeof(*targets)));
    for (size_t i = 0; targets && i < batch->count; i++)
        targets[i] = batch->targets[i].user;
    if (targets)
        r = (batch->unfollows ? sl_unfollow_many_call : sl_follow_many_call)(
            &request->call, &meta, request->request_id, &user, targets, batch->count, &failure);
    mem_free(targets);
    return api_send(request, r, &failure, on_changed);
}

static struct sl_slice keep(struct sl_slice text, char *room, size_t size)
{
    size_t kept = text.size < size ? text.size : size;

    memcpy(room, text.data, kept);
    return sl_slice(room, kept);
}

static int take_target(struct api_request *request, uint32_t item, const struct sl_user_row *row,
                       const struct failure *failure)
{
    struct batch *batch = request->state;
    struct target *target = &batch->targets[batch->absent[item]];

    (void)failure;
    if (!row)
        return 0;
    target->user.id = row->user.id;
    target->user.login = keep(row->user.login, target->login, sizeof(target->login));
    target->user.name = keep(row->user.name, target->name, sizeof(target->name));
    return 0;
}

static int on_found(struct api_request *request, size_t part, const redisReply *reply)
{
    return api_each_user(request, &request->calls, part, reply, take_target);
}

static int look_up(struct api_request *request)
{
    const struct sl_meta meta = api_meta(request);
    struct batch *batch = request->state;
    struct failure failure = {"out of memory"};
    struct sl_user_ref *refs;
    int r = -ENOMEM;

    refs = mem_alloc(mem_array_size(batch->absent_count, sizeof(*refs)));
    for (size_t i = 0; refs && i < batch->absent_count; i++)
        refs[i] = batch->targets[batch->absent[i]].ref;
    if (refs)
        r = sl_users_calls(&request->calls, &meta, refs, batch->absent_count, &failure);
    mem_free(refs);
    return api_send_all(request, r, &failure, on_found, change_all);
}

/* A text that cannot be a user is treated as one that was not found. */
static int add_target(struct api_request *request, struct batch *batch, const json_t *text)
{
    const struct sl_user_ref user = sl_user_by_id(request->caller);
    const struct sl_meta meta = api_meta(request);
    struct target *target = &batch->targets[batch->count++];
    struct http_refusal ignored;
    bool needs_lookup = false;

    if (!json_is_string(text))
        return api_refuse(request, 400, "bad_type", "users", "users must contain only ids");
    target->given = sl_slice(json_string_value(text), json_string_length(text));
    if (api_read_user(&meta, target->given, &target->ref, &ignored) < 0 ||
        sl_follow_needs_lookup(&meta, &user, &target->ref, &needs_lookup, NULL) < 0)
        return 0;
    if (needs_lookup)
        batch->absent[batch->absent_count++] = batch->count - 1;
    else
        target->user = (struct sl_user){.id = target->ref.id, .login = target->ref.login};
    return 0;
}

static int change_many(struct api_request *request, bool unfollows)
{
    const json_t *users = NULL;
    const struct api_member members[] = {{"users", API_ARRAY, true, .ret_json = &users}};
    struct batch *batch;
    size_t count;
    int r;

    r = api_members_read(request->body, NULL, members, 1, &request->refusal);
    if (r < 0)
        return r;
    count = json_array_size(users);
    if (count < 1 || count > SL_FOLLOW_MAX)
        return api_refuse(request, 400, "bad_length", "users", "users has 1 to %d ids",
                          SL_FOLLOW_MAX);
    request->state = batch = mem_zalloc(sizeof(*batch) + count * sizeof(batch->targets[0]));
    if (!batch)
        return api_fail_for_memory(request);
    batch->unfollows = unfollows;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = add_target(request, batch, json_array_get(users, i));
    if (r < 0)
        return r;
    return batch->absent_count > 0 ? look_up(request) : change_all(request, NULL);
}

int relations_follow_many(struct api_request *request, const redisReply *reply)
{
    (void)reply;
    return change_many(request, false);
}

int relations_unfollow_many(struct api_request *request, const redisReply *reply)
{
    (void)reply;
    return change_many(request, true);
}
