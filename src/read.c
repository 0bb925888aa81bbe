#include "src/read.h"

#include <errno.h>
#include <inttypes.h>

#include "src/id.h"
#include "src/read_build.h"

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
    if (reader == SL_READER_NOBODY || reader == SL_READER_SYSTEM ||
        (reader <= SL_ID_MAX && sl_id_shard(reader) < meta->shards))
        return 0;
    return failure_set(reterr, -EINVAL, "%" PRIu64 " is no id of this database", reader);
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
