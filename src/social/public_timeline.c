#include "src/social/public_timeline.h"

#include <errno.h>
#include <inttypes.h>

#include <hiredis/hiredis.h>

#include "src/call/read_build.h"
#include "src/call/reply_read.h"

int sl_public_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                   uint32_t shard, const struct sl_page *page, struct failure *reterr)
{
    int r;

    r = sl_read_check_reader(reader, meta, reterr);
    if (r == 0)
        r = sl_read_check_page(page, reterr);
    if (r == 0 && shard >= meta->shards)
        r = failure_set(reterr, -EINVAL, "there is no shard %" PRIu32, shard);
    if (r < 0)
        return r;
    sl_read_begin(call, &sl_script_read_public, shard, meta, reader);
    sl_read_add_page(call, page);
    return sl_call_finish(call, reterr);
}

int sl_public_reply(const struct redisReply *reply, uint64_t *ret_stop, size_t *ret_count,
                    struct failure *reterr)
{
    int r;

    r = sl_reply_check_array(reply, 1, reterr);
    if (r == 0)
        r = sl_reply_read_number(reply, 0, ret_stop, reterr);
    if (r == 0)
        *ret_count = reply->elements - 1;
    return r;
}

int sl_public_at(const struct redisReply *reply, size_t i, uint64_t *ret_post,
                 struct failure *reterr)
{
    return sl_reply_read_id(reply, i + 1, ret_post, reterr);
}
