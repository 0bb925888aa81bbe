/* likes.c - builders for likes.
 *
 * The post's shard stores who likes it, the user's shard what the user likes. A builder is for one
 * of the two; to change both, send the user's first (likes.h). */
#include "src/social/likes.h"

#include <errno.h>

#include <hiredis/hiredis.h>

#include "src/call/list_build.h"
#include "src/call/reply_read.h"
#include "src/model/id.h"
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

static int build_note(struct sl_call *call, const char *operation, const struct sl_meta *meta,
                      const struct sl_user_ref *user, uint64_t post, struct failure *reterr)
{
    struct sl_write_user who;
    int r;

    r = sl_id_check(post, meta, reterr);
    if (r == 0)
        r = sl_write_user_init(&who, user, meta, reterr);
    if (r < 0)
        return r;
    sl_call_begin_repeatable(call, &sl_script_note_like, who.shard, meta->shards);
    call->is_write = true;
    sl_call_add_str(call, operation);
    sl_call_add(call, who.slice);
    sl_call_add_id(call, post);
    return sl_call_finish(call, reterr);
}

int sl_like_note_call(struct sl_call *call, const struct sl_meta *meta,
                      const struct sl_user_ref *user, uint64_t post, struct failure *reterr)
{
    return build_note(call, "like", meta, user, post, reterr);
}

int sl_unlike_note_call(struct sl_call *call, const struct sl_meta *meta,
                        const struct sl_user_ref *user, uint64_t post, struct failure *reterr)
{
    return build_note(call, "unlike", meta, user, post, reterr);
}

int sl_liked_list_call(struct sl_call *call, const struct sl_meta *meta,
                       const struct sl_user_ref *user, const struct sl_page *page,
                       struct failure *reterr)
{
    return sl_list_of_user_build(call, "liked", meta, SL_READER_NOBODY, user, page, reterr);
}

int sl_liked_list_reply(const struct redisReply *reply, size_t *ret_count, struct failure *reterr)
{
    int r = sl_reply_check_array(reply, 0, reterr);

    if (r == 0)
        *ret_count = reply->elements;
    return r;
}

int sl_liked_list_at(const struct redisReply *reply, size_t i, struct sl_liked_post *ret_liked,
                     struct failure *reterr)
{
    struct sl_liked_post liked;
    const struct redisReply *row;
    int r;

    r = sl_reply_read_row(reply, i, 2, &row, reterr);
    if (r == 0)
        r = sl_reply_read_id(row, 0, &liked.position, reterr);
    if (r == 0)
        r = sl_reply_read_id(row, 1, &liked.post, reterr);
    if (r == 0)
        *ret_liked = liked;
    return r;
}
