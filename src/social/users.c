/* users.c - builders and parsers of calls that create, change, find and read users.
 *
 * A user given by login is looked up in the shard of the login, one given by id in the shard of the
 * id. For many users there is one call for each shard. Names are checked as single-line texts,
 * logins by their own rule. Rows point into the reply. */
#include "src/social/users.h"

#include <errno.h>

#include <hiredis/hiredis.h>

#include "base/buffer.h"
#include "src/model/login.h"
#include "src/social/row_read.h"
#include "src/call/reply_read.h"
#include "src/call/shard_calls_build.h"
#include "src/model/text.h"
#include "src/call/write_build.h"

int sl_user_create_call(struct sl_call *call, const struct sl_meta *meta,
                        struct sl_slice request_id, struct sl_slice login, struct sl_slice name,
                        struct failure *reterr)
{
    char room[SL_LOGIN_SIZE];
    struct sl_slice folded;
    int r;

    r = sl_login_fold(login, room, &folded, reterr);
    if (r == 0 && name.data)
        r = sl_text_check_line(name, "the name", SL_NAME_MAX, reterr);
    if (r == 0)
        r = sl_write_begin(call, &sl_script_create_user, sl_login_shard(folded, meta->shards), meta,
                           request_id, reterr);
    if (r < 0)
        return r;
    sl_call_add(call, folded);
    sl_call_add(call, login);
    sl_call_add(call, name.data ? name : login);
    return sl_call_finish(call, reterr);
}

/* --- change --- */

static int check_change(const struct sl_user_change *change, struct failure *reterr)
{
    int r = 0;

    if (change->name.data)
        r = sl_text_check_line(change->name, "the name", SL_NAME_MAX, reterr);
    if (r == 0 && change->bio.size > 0)
        r = sl_text_check(change->bio, "the bio", SL_BIO_MAX, reterr);
    if (r == 0 && change->avatar.size > 0)
        r = sl_text_check_link(change->avatar, "the avatar", reterr);
    if (r == 0 && change->field_count > SL_USER_FIELDS_MAX)
        r = failure_set(reterr, -EINVAL, "a user has up to %d fields", SL_USER_FIELDS_MAX);
    for (size_t i = 0; r == 0 && i < change->field_count; i++) {
        r = sl_text_check_line(change->fields[i].name, "the name of a field",
                               SL_USER_FIELD_NAME_MAX, reterr);
        if (r == 0)
            r = sl_text_check_line(change->fields[i].value, "the value of a field",
                                   SL_USER_FIELD_VALUE_MAX, reterr);
    }
    return r;
}

static void add_member(struct sl_call *call, const char *name, struct sl_slice value)
{
    if (!value.data)
        return;
    sl_call_add_str(call, name);
    sl_call_add(call, value);
}

/* Adds [{"name":"...","value":"..."},...]; nothing if there are none. */
static void add_fields(struct sl_call *call, const struct sl_user_change *change)
{
    struct buffer json = BUFFER_INIT;

    if (!change->changes_fields)
        return;
    for (size_t i = 0; i < change->field_count; i++) {
        buffer_append_str(&json, i == 0 ? "[{\"name\":" : ",{\"name\":");
        buffer_append_json_string(&json, change->fields[i].name);
        buffer_append_str(&json, ",\"value\":");
        buffer_append_json_string(&json, change->fields[i].value);
        buffer_append_char(&json, '}');
    }
    if (change->field_count > 0)
        buffer_append_char(&json, ']');
    sl_call_add_str(call, "fields");
    sl_call_add(call, buffer_slice(&json));
    call->failed = call->failed || json.failed;
    buffer_done(&json);
}

int sl_user_change_call(struct sl_call *call, const struct sl_meta *meta,
                        struct sl_slice request_id, const struct sl_user_ref *user,
                        const struct sl_user_change *change, struct failure *reterr)
{
    struct sl_slice folded = SL_SLICE_NONE;
    struct sl_write_user who;
    char room[SL_LOGIN_SIZE];
    int r;

    r = check_change(change, reterr);
    if (r == 0 && change->login.data)
        r = sl_login_fold(change->login, room, &folded, reterr);
    if (r == 0)
        r = sl_write_user_init(&who, user, meta, reterr);
    if (r == 0 && folded.data && sl_login_shard(folded, meta->shards) != who.shard)
        r = failure_set(reterr, -EXDEV,
                        "the login @%.*s belongs to another shard of the database than the user",
                        SL_SLICE_ARG(folded));
    if (r == 0)
        r = sl_write_begin(call, &sl_script_change_user, who.shard, meta, request_id, reterr);
    if (r < 0)
        return r;
    sl_call_add(call, who.slice);
    add_member(call, "name", change->name);
    add_member(call, "login", change->login);
    if (folded.data)
        sl_call_add(call, folded);
    add_member(call, "bio", change->bio);
    add_member(call, "avatar", change->avatar);
    add_fields(call, change);
    return sl_call_finish(call, reterr);
}

int sl_user_rename_call(struct sl_call *call, const struct sl_meta *meta,
                        struct sl_slice request_id, const struct sl_user_ref *user,
                        struct sl_slice name, struct failure *reterr)
{
    const struct sl_user_change change = {.name = name.data ? name : SL_SLICE("")};

    return sl_user_change_call(call, meta, request_id, user, &change, reterr);
}

int sl_last_read_call(struct sl_call *call, const struct sl_meta *meta,
                      const struct sl_user_ref *user, uint64_t last_read, struct failure *reterr)
{
    struct sl_write_user who;
    int r;

    r = sl_write_user_init(&who, user, meta, reterr);
    if (r < 0)
        return r;
    sl_call_begin_repeatable(call, &sl_script_last_read, who.shard, meta->shards);
    sl_call_add(call, who.slice);
    if (last_read != 0) {
        call->is_write = true;
        sl_call_add_id(call, last_read);
    }
    return sl_call_finish(call, reterr);
}

int sl_last_read_reply(const struct redisReply *reply, uint64_t *ret_last_read,
                       struct failure *reterr)
{
    int r = sl_reply_check_array(reply, 2, reterr);

    if (r < 0)
        return r;
    *ret_last_read = 0;
    return sl_reply_at(reply, 1).size == 0 ? 0 : sl_reply_read_id(reply, 1, ret_last_read, reterr);
}

/* --- read --- */

/* A call of a script about one user. */
static int build_read(struct sl_call *call, const struct sl_script *script,
                      const struct sl_meta *meta, const struct sl_user_ref *user,
                      struct failure *reterr)
{
    struct sl_write_user who;
    int r;

    r = sl_write_user_init(&who, user, meta, reterr);
    if (r < 0)
        return r;
    sl_call_begin_repeatable(call, script, who.shard, meta->shards);
    sl_call_add(call, who.slice);
    return sl_call_finish(call, reterr);
}

int sl_user_find_call(struct sl_call *call, const struct sl_meta *meta,
                      const struct sl_user_ref *user, struct failure *reterr)
{
    return build_read(call, &sl_script_find_user, meta, user, reterr);
}

int sl_user_find_reply(const struct redisReply *reply, struct sl_user *ret_user,
                       struct failure *reterr)
{
    struct sl_user user;
    int r;

    r = sl_reply_check_array(reply, 3, reterr);
    if (r == 0)
        r = sl_reply_read_id(reply, 0, &user.id, reterr);
    if (r < 0)
        return r;
    user.login = sl_reply_at(reply, 1);
    user.name = sl_reply_at(reply, 2);
    if (!user.login.data || !user.name.data)
        return sl_reply_unexpected(reterr);
    *ret_user = user;
    return 0;
}

int sl_user_row_call(struct sl_call *call, const struct sl_meta *meta,
                     const struct sl_user_ref *user, struct failure *reterr)
{
    return build_read(call, &sl_script_read_users, meta, user, reterr);
}

static int add_user(struct sl_shard_calls *calls, const struct sl_meta *meta,
                    const struct sl_user_ref *user, struct failure *reterr)
{
    struct sl_write_user who;
    struct sl_call *call;
    bool is_new;
    int r;

    r = sl_write_user_init(&who, user, meta, reterr);
    if (r < 0)
        return r;
    call = sl_shard_calls_next(calls, who.shard, &is_new);
    if (is_new)
        sl_call_begin_repeatable(call, &sl_script_read_users, who.shard, meta->shards);
    sl_call_add(call, who.slice);
    return 0;
}

int sl_users_calls(struct sl_shard_calls *calls, const struct sl_meta *meta,
                   const struct sl_user_ref *users, size_t count, struct failure *reterr)
{
    int r;

    r = sl_shard_calls_begin(calls, meta, count, reterr);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = add_user(calls, meta, &users[i], reterr);
    return sl_shard_calls_finish(calls, r, reterr);
}

int sl_users_reply(const struct redisReply *reply, size_t count, struct failure *reterr)
{
    return sl_reply_check_array(reply, count, reterr);
}

int sl_user_row_read(const struct redisReply *row, size_t at, struct sl_user_row *ret_row,
                     struct failure *reterr)
{
    const bool is_bare = row->elements < at + SL_USER_ROW_SIZE;
    const size_t name_at = is_bare ? at + 1 : at + 2, counts_at = is_bare ? at + 2 : at + 4;
    struct sl_user_row read = {0};
    int r;

    r = sl_reply_read_id(row, at, &read.user.id, reterr);
    read.user.name = sl_reply_at(row, name_at);
    if (!is_bare) {
        read.user.login = sl_reply_at(row, at + 1);
        read.signup = sl_reply_at(row, at + 3);
        read.profile = sl_reply_at(row, at + 8);
    }
    if (r == 0 && (!read.user.name.data || (!is_bare && (!read.user.login.data ||
                                                         !read.signup.data || !read.profile.data))))
        r = sl_reply_unexpected(reterr);
    if (r == 0)
        r = sl_reply_read_number(row, counts_at, &read.followers, reterr);
    if (r == 0)
        r = sl_reply_read_number(row, counts_at + 1, &read.following, reterr);
    if (r == 0)
        r = sl_reply_read_number(row, counts_at + 2, &read.posts, reterr);
    if (r == 0)
        r = sl_reply_read_number(row, counts_at + 3, &read.version, reterr);
    if (r == 0)
        *ret_row = read;
    return r;
}

int sl_users_at(const struct redisReply *reply, size_t i, struct sl_user_row *ret_row,
                struct failure *reterr)
{
    const struct redisReply *row;
    int r;

    r = sl_reply_read_row(reply, i, SL_USER_BARE_ROW_SIZE, &row, reterr);
    return r < 0 ? r : sl_user_row_read(row, 0, ret_row, reterr);
}
