/* follows.c - one script for follow and unfollow, of one target or of many.
 *
 * A target in the follower's shard is given by id or login and looked up there. A target in another
 * shard must be given with its id, login and name, because the event contains them and the script
 * cannot look there (-EXDEV without an id). SL_FOLLOW_MAX limits the time of the script. */
#include "src/social/follows.h"

#include <errno.h>

#include <hiredis/hiredis.h>

#include "src/call/list_build.h"
#include "src/call/reply_read.h"
#include "src/call/write_build.h"
#include "src/model/id.h"
#include "src/model/keys.h"

/* Adds a target in the form that the script takes. */
static int add_target(struct sl_call *call, const struct sl_meta *meta,
                      const struct sl_write_user *who, const struct sl_user *target,
                      struct failure *reterr)
{
    const struct sl_user_ref ref = {target->id, target->login};
    struct sl_write_user whom = {.slice = SL_SLICE("-")};
    bool is_found = target->id != 0 || target->login.data, is_elsewhere;
    int r;

    r = is_found ? sl_write_user_init(&whom, &ref, meta, reterr) : 0;
    if (r < 0)
        return r;
    is_elsewhere = is_found && whom.shard != who->shard;
    if (is_elsewhere && target->id == 0)
        return failure_set(reterr, -EXDEV, "the two users live in different shards");
    sl_call_add(call, whom.slice);
    sl_call_add(call, is_elsewhere ? target->login : SL_SLICE_NONE);
    sl_call_add(call, is_elsewhere ? target->name : SL_SLICE_NONE);
    return 0;
}

static int build(struct sl_call *call, const char *operation, const struct sl_meta *meta,
                 struct sl_slice request_id, const struct sl_user_ref *user,
                 const struct sl_user *targets, size_t count, struct failure *reterr)
{
    struct sl_write_user who;
    int r;

    if (count < 1 || count > SL_FOLLOW_MAX)
        return failure_set(reterr, -EINVAL, "1 to %d users can be followed at once", SL_FOLLOW_MAX);
    r = sl_write_user_init(&who, user, meta, reterr);
    if (r == 0)
        r = sl_write_begin(call, &sl_script_follow, who.shard, meta, request_id, reterr);
    if (r < 0)
        return r;
    sl_call_add_str(call, operation);
    sl_call_add(call, who.slice);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = add_target(call, meta, &who, &targets[i], reterr);
    return r < 0 ? r : sl_call_finish(call, reterr);
}

int sl_follow_many_call(struct sl_call *call, const struct sl_meta *meta,
                        struct sl_slice request_id, const struct sl_user_ref *user,
                        const struct sl_user *targets, size_t count, struct failure *reterr)
{
    return build(call, "follow", meta, request_id, user, targets, count, reterr);
}

int sl_unfollow_many_call(struct sl_call *call, const struct sl_meta *meta,
                          struct sl_slice request_id, const struct sl_user_ref *user,
                          const struct sl_user *targets, size_t count, struct failure *reterr)
{
    return build(call, "unfollow", meta, request_id, user, targets, count, reterr);
}

int sl_follow_call(struct sl_call *call, const struct sl_meta *meta, struct sl_slice request_id,
                   const struct sl_user_ref *user, const struct sl_user *target,
                   struct failure *reterr)
{
    return build(call, "follow", meta, request_id, user, target, 1, reterr);
}

int sl_unfollow_call(struct sl_call *call, const struct sl_meta *meta, struct sl_slice request_id,
                     const struct sl_user_ref *user, const struct sl_user *target,
                     struct failure *reterr)
{
    return build(call, "unfollow", meta, request_id, user, target, 1, reterr);
}

int sl_follow_needs_lookup(const struct sl_meta *meta, const struct sl_user_ref *user,
                           const struct sl_user_ref *target, bool *ret_needs,
                           struct failure *reterr)
{
    struct sl_write_user who, whom;
    int r;

    r = sl_write_user_init(&who, user, meta, reterr);
    if (r == 0)
        r = sl_write_user_init(&whom, target, meta, reterr);
    if (r == 0)
        *ret_needs = who.shard != whom.shard;
    return r;
}

int sl_follower_list_call(struct sl_call *call, const struct sl_meta *meta,
                          const struct sl_user_ref *user, const struct sl_page *page,
                          struct failure *reterr)
{
    return sl_list_of_user_build(call, "followers", meta, SL_READER_NOBODY, user, page, reterr);
}

int sl_following_list_call(struct sl_call *call, const struct sl_meta *meta,
                           const struct sl_user_ref *user, const struct sl_page *page,
                           struct failure *reterr)
{
    return sl_list_of_user_build(call, "following", meta, SL_READER_NOBODY, user, page, reterr);
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
