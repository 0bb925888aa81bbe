/* meta.c - the script that creates a database and the plain command that reads it return the same
 * fields in the same order.
 *
 * A missing field belongs to a newer version of the program, or has its default. */
#include "src/database/meta.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "src/call/call_build.h"
#include "src/call/reply_read.h"
#include "src/database/forms.h"
#include "src/model/id.h"
#include "src/model/keys.h"

/* As in src/scripts/common.lua, like the following. */
static const char *const SCHEMA = "1", *const UPGRADED = "2";
static const char *const SHARDED = "sharded";

struct sl_meta sl_meta_wanted(uint32_t shards)
{
    struct hash_key random = hash_key_random();
    struct sl_meta wanted = {.shards = shards};

    snprintf(wanted.database_id, sizeof(wanted.database_id), "%016" PRIx64 "%016" PRIx64, random.k0,
             random.k1);
    return wanted;
}

int sl_meta_call(struct sl_call *call, uint32_t shard, const struct sl_meta *wanted,
                 struct failure *reterr)
{
    if (wanted->shards < 1 || wanted->shards > SL_SHARDS_MAX || shard >= wanted->shards)
        return failure_set(reterr, -EINVAL, "a database has 1 to %d shards", SL_SHARDS_MAX);
    sl_call_begin_repeatable(call, &sl_script_init, shard, wanted->shards);
    sl_call_add_str(call, wanted->database_id);
    sl_call_add_str(call, wanted->is_clustered ? SHARDED : "");
    return sl_call_finish(call, reterr);
}

/* Reads schema, database, shards, pubsub, clock_until, forms: elements of the reply from `first`
 * on. */
static int read_fields(const struct redisReply *reply, size_t first, struct sl_meta *ret_meta,
                       struct failure *reterr)
{
    const struct sl_slice schema = sl_reply_at(reply, first), id = sl_reply_at(reply, first + 1);
    struct sl_meta meta = {0};
    unsigned forms;
    uint64_t shards;
    int r;

    if (!sl_slice_is(schema, SCHEMA) && !sl_slice_is(schema, UPGRADED))
        return failure_set(reterr, -ESTALE,
                           "the database has schema '%.*s', this program knows %s and %s",
                           SL_SLICE_ARG(schema), SCHEMA, UPGRADED);
    r = sl_forms_read(sl_reply_at(reply, first + 5), &forms, reterr);
    if (r == 0)
        r = sl_reply_read_id(reply, first + 2, &shards, reterr);
    if (r == 0 && sl_reply_at(reply, first + 4).data)
        r = sl_reply_read_number(reply, first + 4, &meta.clock_until_ms, reterr);
    if (r < 0)
        return r;
    if (id.size != sizeof(meta.database_id) - 1 || shards > SL_SHARDS_MAX)
        return sl_reply_unexpected(reterr);
    memcpy(meta.database_id, id.data, id.size);
    meta.shards = (uint32_t)shards;
    meta.is_clustered = sl_slice_is(sl_reply_at(reply, first + 3), SHARDED);
    *ret_meta = meta;
    return 0;
}

int sl_meta_reply(const struct redisReply *reply, struct sl_meta *ret_meta, struct failure *reterr)
{
    struct sl_meta meta;
    int r;

    r = sl_reply_check_array(reply, 7, reterr);
    if (r == 0)
        r = read_fields(reply, 1, &meta, reterr);
    if (r == 0)
        r = sl_reply_read_flag(reply, 0, &meta.is_new, reterr);
    if (r == 0)
        *ret_meta = meta;
    return r;
}

int sl_meta_look_call(struct sl_call *call, uint32_t shard, struct failure *reterr)
{
    static const char *const fields[] = {"schema", "database",    "shards",
                                         "pubsub", "clock_until", "forms"};
    char key[SL_KEY_SIZE];

    sl_call_begin(call, shard, true);
    sl_call_add_str(call, "HMGET");
    sl_call_add_str(call, sl_key(shard, "meta", key));
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        sl_call_add_str(call, fields[i]);
    return sl_call_finish(call, reterr);
}

int sl_meta_look_reply(const struct redisReply *reply, struct sl_meta *ret_meta,
                       struct failure *reterr)
{
    int r = sl_reply_check_array(reply, 6, reterr);

    if (r == 0 && !sl_reply_at(reply, 0).data)
        return failure_set(reterr, -ENODATA, "this Redis holds no Sluice database yet");
    return r == 0 ? read_fields(reply, 0, ret_meta, reterr) : r;
}

int sl_meta_check_same(const struct sl_meta *meta, const struct sl_meta *other,
                       struct failure *reterr)
{
    if (strcmp(meta->database_id, other->database_id) == 0 && meta->shards == other->shards)
        return 0;
    return failure_set(reterr, -EBADMSG, "the shards of this Redis belong to different databases");
}
