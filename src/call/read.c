#include "src/call/read.h"

#include <errno.h>
#include <inttypes.h>

#include "src/call/read_build.h"
#include "src/model/id.h"
#include "src/model/id_check.h"

void sl_read_begin(struct sl_call *call, const struct sl_script *script, uint32_t shard,
                   const struct sl_meta *meta, uint64_t reader)
{
    sl_call_begin_repeatable(call, script, shard, meta->shards);
    if (reader == SL_READER_SYSTEM)
        sl_call_add_str(call, "*");
    else if (reader == SL_READER_NOBODY)
        sl_call_add_str(call, "");
    else
        sl_call_add_id(call, reader);
}

int sl_read_check_reader(uint64_t reader, const struct sl_meta *meta, struct failure *reterr)
{
    return reader == SL_READER_NOBODY || reader == SL_READER_SYSTEM
               ? 0
               : sl_id_check(reader, meta, reterr);
}

int sl_read_post_build(struct sl_call *call, const struct sl_script *script,
                       const struct sl_meta *meta, uint64_t reader, uint64_t post,
                       struct failure *reterr)
{
    int r;

    r = sl_read_check_reader(reader, meta, reterr);
    if (r == 0)
        r = sl_id_check(post, meta, reterr);
    if (r < 0)
        return r;
    sl_read_begin(call, script, sl_id_shard(post), meta, reader);
    sl_call_add_id(call, post);
    return sl_call_finish(call, reterr);
}

int sl_read_check_page(const struct sl_page *page, struct failure *reterr)
{
    if (page->limit < 1 || page->limit > SL_PAGE_MAX)
        return failure_set(reterr, -EINVAL, "a page has 1 to %d rows", SL_PAGE_MAX);
    if (page->before > SL_ID_MAX)
        return failure_set(reterr, -EINVAL, "%" PRIu64 " is no position in a list", page->before);
    return 0;
}

void sl_read_add_page(struct sl_call *call, const struct sl_page *page)
{
    if (page->before == 0)
        sl_call_add_str(call, "+inf");
    else
        sl_call_add_id(call, page->before);
    sl_call_add_id(call, page->limit);
}
