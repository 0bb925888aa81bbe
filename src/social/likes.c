#include "src/social/likes.h"

#include <errno.h>

#include "src/model/id.h"
#include "src/call/list_build.h"
#include "src/model/id_check.h"

static int build(struct sl_call *call, const char *operation, const struct sl_meta *meta,
                 struct sl_slice request_id, const struct sl_user_ref *user, uint64_t post,
                 struct failure *reterr)
{
    struct sl_write_user who;
    int r;

    r = sl_id_check(post, meta, reterr);
    if (r == 0)
        r = sl_write_user_init(&who, user, meta, reterr);
    if (r < 0)
        return r;
    if (user->id == 0 && who.shard != sl_id_shard(post))
        return failure_set(reterr, -EXDEV, "the user lives in another shard than the post");
    r = sl_write_begin(call, &sl_script_like, sl_id_shard(post), meta, request_id, reterr);
    if (r < 0)
        return r;
    sl_call_add_str(call, operation);
    sl_call_add(call, who.slice);
    sl_call_add_id(call, post);
    return sl_call_finish(call, reterr);
}

int sl_like_call(struct sl_call *call, const struct sl_meta *meta, struct sl_slice request_id,
                 const struct sl_user_ref *user, uint64_t post, struct failure *reterr)
{
    return build(call, "like", meta, request_id, user, post, reterr);
}

int sl_unlike_call(struct sl_call *call, const struct sl_meta *meta, struct sl_slice request_id,
                   const struct sl_user_ref *user, uint64_t post, struct failure *reterr)
{
    return build(call, "unlike", meta, request_id, user, post, reterr);
}

int sl_like_list_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                      uint64_t post, const struct sl_page *page, struct failure *reterr)
{
    return sl_list_of_post_build(call, "likes", meta, reader, post, page, SL_SLICE_NONE, reterr);
}
