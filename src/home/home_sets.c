#include "src/home/home_sets.h"

#include <hiredis/hiredis.h>

#include "src/call/reply_read.h"
#include "src/call/write_build.h"
#include "src/model/id.h"

int sl_home_sets_call(struct sl_call *call, const struct sl_meta *meta, uint64_t user,
                      struct failure *reterr)
{
    const struct sl_user_ref ref = sl_user_by_id(user);
    struct sl_write_user who;
    int r;

    r = sl_write_user_init(&who, &ref, meta, reterr);
    if (r < 0)
        return r;
    sl_call_begin_repeatable(call, &sl_script_home_sets, who.shard, meta->shards);
    sl_call_add_id(call, user);
    return sl_call_finish(call, reterr);
}

int sl_home_sets_reply(const struct redisReply *reply, struct sl_home_sets *ret_sets,
                       struct failure *reterr)
{
    struct sl_home_sets sets = {{0}};
    const struct redisReply *set;
    uint64_t id;
    int r;

    r = sl_reply_check_array(reply, SL_HOME_SETS, reterr);
    for (size_t s = 0; r == 0 && s < SL_HOME_SETS; s++) {
        r = sl_reply_read_row(reply, s, 0, &set, reterr);
        for (size_t i = 0; r == 0 && i < set->elements; i++)
            r = sl_reply_read_id(set, i, &id, reterr);
        if (r == 0)
            sets.begin[s + 1] = sets.begin[s] + set->elements;
    }
    if (r == 0)
        *ret_sets = sets;
    return r;
}

struct sl_slice sl_home_sets_at(const struct redisReply *reply, const struct sl_home_sets *sets,
                                size_t i)
{
    size_t set = 0;

    while (i >= sets->begin[set + 1])
        set++;
    return sl_reply_at(reply->element[set], i - sets->begin[set]);
}
