#include "src/model/id_check.h"

#include <errno.h>
#include <inttypes.h>

#include "src/model/id.h"

int sl_id_check(uint64_t id, const struct sl_meta *meta, struct failure *reterr)
{
    if (id >= 1 && id <= SL_ID_MAX && sl_id_shard(id) < meta->shards)
        return 0;
    return failure_set(reterr, -EINVAL, "%" PRIu64 " is no id of this database", id);
}
