#include "src/follows.h"

#include <errno.h>

#include <hiredis/hiredis.h>

#include "src/id.h"
#include "src/keys.h"
#include "src/reply_read.h"
#include "src/write_build.h"

static int build(struct sl_call *call, const char *operation, const struct sl_meta *meta,
                 struct sl_slice request_id, const struct sl_user_ref *user,
                 const struct sl_user *target, struct failure *reterr)
{
    const struct sl_user_ref target_ref = {target->id, target->login};
    struct sl_write_user who, whom;
    int r;

    r = sl_write_user_init(&who, user, meta, reterr);
    if (r == 0)
        r = sl_write_user_init(&whom, &target_ref, meta, reterr);
    if (r < 0)
        return r;
    if (target->id == 0 && whom.shard != who.shard)
        return failure_set(reterr, -EXDEV, "the two users live in different shards");
    r = sl_write_begin(call, &sl_script_follow, who.shard, meta, request_id, reterr);
    if (r < 0)
        return r;
    sl_call_add_str(call, operation);
    sl_call_add(call, who.slice);
    sl_call_add(call, whom.slice);
    if (whom.shard != who.shard) {
        sl_call_add(call, target->login);
        sl_call_add(call, target->name);
    }
    return sl_call_finish(call, reterr);
}

int sl_follow_call(struct sl_call *call, const struct sl_meta *meta, struct sl_slice request_id,
                   const struct sl_user_ref *user, const struct sl_user *target,
                   struct failure *reterr)
{
    return build(call, "follow", meta, request_id, user, target, reterr);
}

int sl_unfollow_call(struct sl_call *call, const struct sl_meta *meta, struct sl_slice request_id,
                     const struct sl_user_ref *user, const struct sl_user *target,
                     struct failure *reterr)
{
    return build(call, "unfollow", meta, request_id, user, target, reterr);
}

int sl_following_call(struct sl_call *call, uint64_t user, struct failure *reterr)
{
    char key[SL_KEY_SIZE];

    sl_call_begin(call, sl_id_shard(user), true);
    sl_call_add_str(call, "ZRANGE");
    sl_call_add_str(call, sl_key_of("following", user, key));
    sl_call_add_str(call, "0");
    sl_call_add_str(call, "-1");
    return sl_call_finish(call, reterr);
}

int sl_following_reply(const struct redisReply *reply, size_t *ret_count, struct failure *reterr)
{
    uint64_t id;
    int r;

    r = sl_reply_check_array(reply, 0, reterr);
    for (size_t i = 0; r == 0 && i < reply->elements; i++)
        r = sl_reply_read_id(reply, i, &id, reterr);
    if (r == 0)
        *ret_count = reply->elements;
    return r;
}

struct sl_slice sl_following_at(const struct redisReply *reply, size_t i)
{
    return sl_reply_at(reply, i);
}
