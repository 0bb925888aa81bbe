#include "src/archive/archived.h"

#include "src/call/list_build.h"
#include "src/call/read_build.h"
#include "src/call/shard_calls_build.h"
#include "src/model/id.h"
#include "src/model/id_check.h"

static int add_post(struct sl_shard_calls *calls, const struct sl_meta *meta, uint64_t reader,
                    const struct sl_archive_post *post, struct failure *reterr)
{
    struct sl_call *call;
    bool is_new;
    int r;

    r = sl_id_check(post->id, meta, reterr);
    if (r < 0)
        return r;
    call = sl_shard_calls_next(calls, sl_id_shard(post->id), &is_new);
    if (is_new)
        sl_read_begin(call, &sl_script_read_archived, sl_id_shard(post->id), meta, reader);
    sl_call_add(call, post->json);
    return 0;
}

int sl_archived_posts_calls(struct sl_shard_calls *calls, const struct sl_meta *meta,
                            uint64_t reader, const struct sl_archive_post *posts, size_t count,
                            struct failure *reterr)
{
    int r;

    r = sl_read_check_reader(reader, meta, reterr);
    if (r == 0)
        r = sl_shard_calls_begin(calls, meta, count, reterr);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = add_post(calls, meta, reader, &posts[i], reterr);
    return sl_shard_calls_finish(calls, r, reterr);
}

int sl_archived_comment_list_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                                  const struct sl_archive_post *post, const struct sl_page *page,
                                  struct failure *reterr)
{
    return sl_list_of_post_build(call, "comments", meta, reader, post->id, page, post->json,
                                 reterr);
}

int sl_archived_like_list_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                               const struct sl_archive_post *post, const struct sl_page *page,
                               struct failure *reterr)
{
    return sl_list_of_post_build(call, "likes", meta, reader, post->id, page, post->json, reterr);
}
