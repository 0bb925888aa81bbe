#include "src/social/privacy.h"

#include <errno.h>

#include "src/call/list_build.h"

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
    r = sl_write_begin(call, &sl_script_privacy, who.shard, meta, request_id, reterr);
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

int sl_hide_call(struct sl_call *call, const struct sl_meta *meta, struct sl_slice request_id,
                 const struct sl_user_ref *user, const struct sl_user *target,
                 struct failure *reterr)
{
    return build(call, "hide", meta, request_id, user, target, reterr);
}

int sl_unhide_call(struct sl_call *call, const struct sl_meta *meta, struct sl_slice request_id,
                   const struct sl_user_ref *user, const struct sl_user *target,
                   struct failure *reterr)
{
    return build(call, "unhide", meta, request_id, user, target, reterr);
}

int sl_mute_call(struct sl_call *call, const struct sl_meta *meta, struct sl_slice request_id,
                 const struct sl_user_ref *user, const struct sl_user *target,
                 struct failure *reterr)
{
    return build(call, "mute", meta, request_id, user, target, reterr);
}

int sl_unmute_call(struct sl_call *call, const struct sl_meta *meta, struct sl_slice request_id,
                   const struct sl_user_ref *user, const struct sl_user *target,
                   struct failure *reterr)
{
    return build(call, "unmute", meta, request_id, user, target, reterr);
}

int sl_hidden_list_call(struct sl_call *call, const struct sl_meta *meta,
                        const struct sl_user_ref *user, const struct sl_page *page,
                        struct failure *reterr)
{
    return sl_list_of_user_build(call, "hidden", meta, SL_READER_NOBODY, user, page, reterr);
}

int sl_muted_list_call(struct sl_call *call, const struct sl_meta *meta,
                       const struct sl_user_ref *user, const struct sl_page *page,
                       struct failure *reterr)
{
    return sl_list_of_user_build(call, "muted", meta, SL_READER_NOBODY, user, page, reterr);
}
