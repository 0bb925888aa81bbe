#include "src/model/keys.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "src/model/id.h"

const char *sl_key(uint32_t shard, const char *name, char room[static SL_KEY_SIZE])
{
    int length = snprintf(room, SL_KEY_SIZE, "sluice:{%" PRIu32 "}:%s", shard, name);

    assert(shard < SL_SHARDS_MAX && length < SL_KEY_SIZE);
    (void)length;
    return room;
}

const char *sl_key_of(const char *name, uint64_t id, char room[static SL_KEY_SIZE])
{
    int length =
        snprintf(room, SL_KEY_SIZE, "sluice:{%" PRIu32 "}:%s:%" PRIu64, sl_id_shard(id), name, id);

    assert(length < SL_KEY_SIZE);
    (void)length;
    return room;
}
