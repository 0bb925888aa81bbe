/* post_rows.c - reads rows of posts in three forms: complete, bare, or only an id.
 *
 * The number of elements tells the form. A bare row lacks what never changes, for readers with a
 * cache. A row with only an id is a post in another shard and is read there, with one call for each
 * shard. Rows point into the reply. A page has at most SL_PAGE_MAX rows. */
#include "src/social/post_rows.h"

#include <errno.h>

#include <hiredis/hiredis.h>

#include "src/call/list_build.h"
#include "src/call/read_build.h"
#include "src/call/reply_read.h"
#include "src/call/shard_calls_build.h"
#include "src/model/id.h"
#include "src/model/id_check.h"
#include "src/social/row_read.h"

int sl_post_row_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                     uint64_t post, struct failure *reterr)
{
    return sl_read_post_build(call, &sl_script_read_posts, meta, reader, post, reterr);
}

static int add_post(struct sl_shard_calls *calls, const struct sl_meta *meta, uint64_t reader,
                    uint64_t post, struct failure *reterr)
{
    struct sl_call *call;
    bool is_new;
    int r;

    r = sl_id_check(post, meta, reterr);
    if (r < 0)
        return r;
    call = sl_shard_calls_next(calls, sl_id_shard(post), &is_new);
    if (is_new)
        sl_read_begin(call, &sl_script_read_posts, sl_id_shard(post), meta, reader);
    sl_call_add_id(call, post);
    return 0;
}

int sl_posts_calls(struct sl_shard_calls *calls, const struct sl_meta *meta, uint64_t reader,
                   const uint64_t *posts, size_t count, struct failure *reterr)
{
    int r;

    r = sl_read_check_reader(reader, meta, reterr);
    if (r == 0)
        r = sl_shard_calls_begin(calls, meta, count, reterr);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = add_post(calls, meta, reader, posts[i], reterr);
    return sl_shard_calls_finish(calls, r, reterr);
}

int sl_posts_reply(const struct redisReply *reply, size_t count, struct failure *reterr)
{
    return sl_reply_check_array(reply, count, reterr);
}

static int read_counts(const struct redisReply *row, size_t at, struct sl_post_row *read,
                       struct failure *reterr)
{
    int r = sl_reply_read_count(row, at, &read->likes, reterr);

    return r < 0 ? r : sl_reply_read_count(row, at + 1, &read->comments, reterr);
}

static int read_bare(const struct redisReply *row, struct sl_post_row *read, struct failure *reterr)
{
    int r = sl_reply_read_id(row, 1, &read->author, reterr);

    read->login = sl_reply_at(row, 2);
    read->name = sl_reply_at(row, 3);
    if (r == 0 && (read->author == 0 || !read->login.data || !read->name.data))
        r = sl_reply_unexpected(reterr);
    return r < 0 ? r : read_counts(row, 4, read, reterr);
}

int sl_post_row_read(const struct redisReply *row, struct sl_post_row *ret_row,
                     struct failure *reterr)
{
    struct sl_post_row read = {0};
    int r;

    r = sl_reply_read_id(row, 0, &read.id, reterr);
    if (r < 0)
        return r;
    if (row->elements >= SL_POST_BARE_ROW_SIZE) {
        r = read_bare(row, &read, reterr);
    } else {
        read.json = sl_reply_at(row, 1);
        r = read.json.size < 2 ? sl_reply_unexpected(reterr) : read_counts(row, 2, &read, reterr);
    }
    if (r == 0)
        *ret_row = read;
    return r;
}

int sl_posts_at(const struct redisReply *reply, size_t i, struct sl_post_row *ret_row,
                struct failure *reterr)
{
    const struct redisReply *row;
    int r;

    r = sl_reply_read_row(reply, i, SL_POST_ROW_SIZE, &row, reterr);
    return r < 0 ? r : sl_post_row_read(row, ret_row, reterr);
}

int sl_post_list_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                      const struct sl_user_ref *user, const struct sl_page *page,
                      struct failure *reterr)
{
    return sl_list_of_user_build(call, "posts", meta, reader, user, page, reterr);
}

int sl_comment_list_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                         uint64_t post, const struct sl_page *page, struct failure *reterr)
{
    return sl_list_of_post_build(call, "comments", meta, reader, post, page, SL_SLICE_NONE, reterr);
}

int sl_post_list_reply(const struct redisReply *reply, size_t *ret_count, struct failure *reterr)
{
    int r = sl_reply_check_array(reply, 0, reterr);

    if (r == 0)
        *ret_count = reply->elements;
    return r;
}

int sl_post_list_at(const struct redisReply *reply, size_t i, struct sl_post_row *ret_row,
                    struct failure *reterr)
{
    struct sl_post_row elsewhere = {0};
    const struct redisReply *row;
    int r;

    r = sl_reply_read_row(reply, i, 1, &row, reterr);
    if (r < 0)
        return r;
    if (row->elements >= SL_POST_ROW_SIZE)
        return sl_post_row_read(row, ret_row, reterr);
    r = sl_reply_read_id(row, 0, &elsewhere.id, reterr);
    if (r == 0)
        *ret_row = elsewhere;
    return r;
}
