/* included.c - builders and parsers of two scripts: the newest comments and likers of posts, and
 * the relations of one user to others.
 *
 * A call is about at most 20 posts of one shard, with ten comments and ten likers each, so that the
 * script reads some hundreds of rows. Rows point into the reply, and are those of lists
 * (post_rows.h, user_list.h). */
#include "src/social/included.h"

#include <errno.h>

#include <hiredis/hiredis.h>

#include "src/call/read_build.h"
#include "src/call/reply_read.h"
#include "src/model/id.h"
#include "src/model/id_check.h"

static int check_posts(const struct sl_meta *meta, const uint64_t *posts, size_t count,
                       struct failure *reterr)
{
    int r = 0;

    if (count < 1 || count > SL_INCLUDED_POSTS_MAX)
        return failure_set(reterr, -EINVAL, "not 1 to %d posts", SL_INCLUDED_POSTS_MAX);
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = sl_id_check(posts[i], meta, reterr);
        if (r == 0 && sl_id_shard(posts[i]) != sl_id_shard(posts[0]))
            r = failure_set(reterr, -EINVAL, "the posts are of several shards");
    }
    return r;
}

int sl_included_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                     const struct sl_included_wish *wish, const uint64_t *posts, size_t count,
                     struct failure *reterr)
{
    int r;

    r = sl_read_check_reader(reader, meta, reterr);
    if (r == 0)
        r = check_posts(meta, posts, count, reterr);
    if (r == 0 && (wish->comments > SL_INCLUDED_MAX || wish->likers > SL_INCLUDED_MAX))
        r = failure_set(reterr, -EINVAL, "more than %d of a post", SL_INCLUDED_MAX);
    if (r < 0)
        return r;
    sl_read_begin(call, &sl_script_read_included, sl_id_shard(posts[0]), meta, reader);
    sl_call_add_id(call, wish->comments);
    sl_call_add_id(call, wish->likers);
    for (size_t i = 0; i < count; i++)
        sl_call_add_id(call, posts[i]);
    return sl_call_finish(call, reterr);
}

int sl_included_reply(const struct redisReply *reply, size_t count, struct failure *reterr)
{
    return sl_reply_check_array(reply, count, reterr);
}

int sl_included_at(const struct redisReply *reply, size_t i, struct sl_included *ret_included,
                   struct failure *reterr)
{
    struct sl_included included = {0};
    const struct redisReply *row;
    int r;

    r = sl_reply_read_row(reply, i, 3, &row, reterr);
    if (r == 0)
        r = sl_reply_read_flag(row, 0, &included.is_liked, reterr);
    if (r == 0)
        r = sl_reply_read_row(row, 1, 0, &included.comments, reterr);
    if (r == 0)
        r = sl_reply_read_row(row, 2, 0, &included.likers, reterr);
    if (r < 0)
        return r;
    included.comment_count = included.comments->elements;
    included.liker_count = included.likers->elements;
    *ret_included = included;
    return 0;
}

int sl_viewer_call(struct sl_call *call, const struct sl_meta *meta, uint64_t user,
                   const uint64_t *others, size_t count, struct failure *reterr)
{
    int r;

    r = sl_id_check(user, meta, reterr);
    if (r < 0)
        return r;
    sl_read_begin(call, &sl_script_read_viewer, sl_id_shard(user), meta, user);
    for (size_t i = 0; i < count; i++)
        sl_call_add_id(call, others[i]);
    return sl_call_finish(call, reterr);
}

int sl_viewer_reply(const struct redisReply *reply, size_t count, struct failure *reterr)
{
    return sl_reply_check_array(reply, count, reterr);
}

int sl_viewer_at(const struct redisReply *reply, size_t i, struct sl_viewer *ret_viewer,
                 struct failure *reterr)
{
    struct sl_viewer viewer = {0};
    const struct redisReply *row;
    int r;

    r = sl_reply_read_row(reply, i, 3, &row, reterr);
    if (r == 0)
        r = sl_reply_read_flag(row, 0, &viewer.follows, reterr);
    if (r == 0)
        r = sl_reply_read_flag(row, 1, &viewer.hides, reterr);
    if (r == 0)
        r = sl_reply_read_flag(row, 2, &viewer.mutes, reterr);
    if (r == 0)
        *ret_viewer = viewer;
    return r;
}
