#include "src/users.h"

#include "src/login.h"
#include "src/reply_read.h"
#include "src/text.h"
#include "src/write_build.h"

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

int sl_user_find_call(struct sl_call *call, const struct sl_meta *meta,
                      const struct sl_user_ref *user, struct failure *reterr)
{
    struct sl_write_user who;
    int r;

    r = sl_write_user_init(&who, user, meta, reterr);
    if (r < 0)
        return r;
    sl_call_begin_script(call, &sl_script_find_user, who.shard, meta->shards, SL_SLICE_NONE);
    call->is_repeatable = true;
    sl_call_add(call, who.slice);
    return sl_call_finish(call, reterr);
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
