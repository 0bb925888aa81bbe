#include "src/database/database_clock.h"

#include <assert.h>

#include "src/call/call_build.h"
#include "src/call/reply_read.h"
#include "src/model/id.h"

enum { SLOWER = 8 }; /* as in src/scripts/common.lua */

uint64_t sl_database_clock_ms(uint64_t time_ms, uint64_t until_ms)
{
    return until_ms > time_ms ? until_ms - (until_ms - time_ms) / SLOWER : time_ms;
}

uint64_t sl_database_clock_when_ms(uint64_t clock_ms, uint64_t until_ms)
{
    uint64_t ahead_ms;

    if (clock_ms > until_ms)
        return clock_ms;
    ahead_ms = (until_ms - clock_ms + 1) * SLOWER - 1;
    return until_ms > ahead_ms ? until_ms - ahead_ms : 0;
}

int sl_clock_raise_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                        const struct sl_clock_raise *raise, struct failure *reterr)
{
    assert(shard < meta->shards && raise->low <= raise->high && raise->high <= SL_ID_MAX);
    sl_call_begin_repeatable(call, &sl_script_raise_clock, shard, meta->shards);
    call->is_write = true;
    sl_call_add_id(call, raise->low);
    sl_call_add_id(call, raise->high);
    sl_call_add_id(call, raise->until_ms);
    return sl_call_finish(call, reterr);
}

int sl_clock_raise_reply(const struct redisReply *reply, struct sl_clock_raised *ret_raised,
                         struct failure *reterr)
{
    struct sl_clock_raised raised;
    int r = sl_reply_check_array(reply, 3, reterr);

    if (r == 0)
        r = sl_reply_read_number(reply, 0, &raised.until_ms, reterr);
    if (r == 0)
        r = sl_reply_read_flag(reply, 1, &raised.is_raised, reterr);
    if (r == 0)
        r = sl_reply_read_flag(reply, 2, &raised.is_marked, reterr);
    if (r == 0)
        *ret_raised = raised;
    return r;
}
