/* common_users.c - builders and parsers of the two scripts. The candidates in the reply of the
 * first are the arguments of the second.
 *
 * They are copied from the reply id by id, without an intermediate list. The keys of the lists are
 * known only to the scripts; here a list has a name. */
#include "src/social/common_users.h"

#include <hiredis/hiredis.h>

#include "src/call/read_build.h"
#include "src/call/reply_read.h"
#include "src/model/id.h"
#include "src/model/id_check.h"

enum { HEAD = 2 }; /* elements before the users, each of which has two */

static void begin(struct sl_call *call, const struct sl_script *script, uint64_t user,
                  const struct sl_meta *meta, enum sl_common_list list)
{
    sl_call_begin_repeatable(call, script, sl_id_shard(user), meta->shards);
    sl_call_add_str(call, list == SL_COMMON_FOLLOWERS ? "followers" : "following");
    sl_call_add_id(call, user);
}

int sl_common_users_call(struct sl_call *call, const struct sl_meta *meta, enum sl_common_list list,
                         uint64_t first, uint64_t second, const struct sl_page *page,
                         struct failure *reterr)
{
    int r;

    r = sl_id_check(first, meta, reterr);
    if (r == 0)
        r = sl_id_check(second, meta, reterr);
    if (r == 0)
        r = sl_read_check_page(page, reterr);
    if (r < 0)
        return r;
    begin(call, &sl_script_common_users, first, meta, list);
    sl_call_add_id(call, second);
    sl_read_add_page(call, page);
    return sl_call_finish(call, reterr);
}

int sl_common_users_reply(const struct redisReply *reply, struct sl_common_page *ret_page,
                          struct failure *reterr)
{
    struct sl_common_page page = {0};
    bool is_checked = false;
    int r;

    r = sl_reply_check_array(reply, HEAD, reterr);
    if (r == 0)
        r = sl_reply_read_flag(reply, 0, &is_checked, reterr);
    if (r == 0)
        r = sl_reply_read_number(reply, 1, &page.next, reterr);
    if (r < 0)
        return r;
    page.needs_check = !is_checked;
    page.count = (reply->elements - HEAD) / 2;
    *ret_page = page;
    return 0;
}

int sl_common_users_at(const struct redisReply *reply, size_t i, struct sl_common_user *ret_user,
                       struct failure *reterr)
{
    struct sl_common_user user;
    int r;

    r = sl_reply_read_id(reply, HEAD + 2 * i, &user.position, reterr);
    if (r == 0)
        r = sl_reply_read_id(reply, HEAD + 2 * i + 1, &user.id, reterr);
    if (r == 0)
        *ret_user = user;
    return r;
}

int sl_common_users_check_call(struct sl_call *call, const struct sl_meta *meta,
                               enum sl_common_list list, uint64_t second,
                               const struct redisReply *reply, struct failure *reterr)
{
    struct sl_common_page page;
    int r;

    r = sl_id_check(second, meta, reterr);
    if (r == 0)
        r = sl_common_users_reply(reply, &page, reterr);
    if (r < 0)
        return r;
    begin(call, &sl_script_check_common, second, meta, list);
    for (size_t i = 0; i < page.count; i++) {
        struct sl_common_user user;

        r = sl_common_users_at(reply, i, &user, reterr);
        if (r < 0)
            return r;
        sl_call_add_id(call, user.id);
    }
    return sl_call_finish(call, reterr);
}

int sl_common_users_check_reply(const struct redisReply *reply, size_t count,
                                struct failure *reterr)
{
    return sl_reply_check_array(reply, count, reterr);
}

int sl_common_users_check_at(const struct redisReply *reply, size_t i, bool *ret_is_common,
                             struct failure *reterr)
{
    return sl_reply_read_flag(reply, i, ret_is_common, reterr);
}
