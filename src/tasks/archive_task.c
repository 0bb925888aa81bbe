/* archive_task.c - moves posts from Redis to the archive, and erases posts from the archive.
 *
 * It works in batches: Redis records that the archive may have the posts and returns them
 * (archive_take.lua). The archive stores them and is then verified, because what was written to a
 * file that somebody has removed is lost. Then Redis forgets them (archive_drop.lua). If this is
 * interrupted anywhere, the posts are in at least one of the two, possibly in both, and the next
 * try continues. Deleting a post that the archive may have adds the task `unarchive` in the same
 * script. The archive does not store what it has erased, so the order of store and erase does not
 * matter. While the archive is missing, full, or not the one that the database knows, posts stay in
 * Redis and the tasks wait. */
#include "src/tasks/archive_task.h"

#include <errno.h>

#include <hiredis/hiredis.h>

#include "src/archive/archive.h"
#include "src/cache/cache.h"
#include "src/call/call_build.h"
#include "src/call/reply_read.h"
#include "src/model/id.h"
#include "src/model/id_check.h"

enum { BATCH_POSTS = 100 }; /* of up to about 40 KB each, to limit the time of Redis */

/* Errors that would have occurred with any other post, too. */
static bool is_of_archive(int error)
{
    static const int errors[] = {-EAGAIN, -EACCES, -EROFS, -ENOSPC, -ENOENT, -ESTALE};

    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (error == errors[i])
            return true;
    }
    return false;
}

/* Evaluates a write to the archive with the result `r`. If it succeeded, verifies the archive. */
static int note(struct sl_worker_thread *thread, struct sl_archive *archive, int r,
                struct failure *reterr)
{
    if (r == 0)
        r = sl_archive_verify(archive, reterr);
    if (is_of_archive(r))
        sl_worker_thread_put_off(thread);
    return r;
}

static void begin(struct sl_call *call, const struct sl_script *script,
                  struct sl_worker_thread *thread, uint64_t id)
{
    sl_call_begin_repeatable(call, script, sl_id_shard(id), sl_worker_thread_meta(thread)->shards);
    sl_call_add_id(call, id);
}

static int send(struct sl_worker_thread *thread, struct sl_call *call, redisReply **ret_reply,
                struct failure *reterr)
{
    int r;

    r = sl_worker_thread_call(thread, call, sl_call_finish(call, reterr), ret_reply, reterr);
    return r < 0 ? r : sl_reply_check(*ret_reply, reterr);
}

/* Reads the reply of archive_take.lua. */
static int read_taken(const redisReply *reply, uint64_t user,
                      struct sl_archive_post ret_posts[BATCH_POSTS], struct failure *reterr)
{
    int r = sl_reply_check_array(reply, 0, reterr);

    if (r == 0 && reply->elements > BATCH_POSTS)
        r = sl_reply_unexpected(reterr);
    for (size_t i = 0; r == 0 && i < reply->elements; i++) {
        const struct redisReply *row;

        r = sl_reply_read_row(reply, i, 2, &row, reterr);
        if (r < 0)
            break;
        ret_posts[i].user = user;
        ret_posts[i].json = sl_reply_at(row, 1);
        r = ret_posts[i].json.data ? sl_reply_read_id(row, 0, &ret_posts[i].id, reterr)
                                   : sl_reply_unexpected(reterr);
    }
    return r;
}

static int drop(struct sl_worker_thread *thread, struct sl_call *call, uint64_t user,
                const struct sl_archive_post *posts, size_t count, struct failure *reterr)
{
    redisReply *reply = NULL;
    int r;

    begin(call, &sl_script_archive_drop, thread, user);
    for (size_t i = 0; i < count; i++)
        sl_call_add_id(call, posts[i].id);
    r = send(thread, call, &reply, reterr);
    freeReplyObject(reply);
    return r;
}

/* *ret_count posts have been moved. */
static int move_batch(struct sl_worker_thread *thread, struct sl_call *call,
                      struct sl_archive *archive, uint64_t user, size_t *ret_count,
                      struct failure *reterr)
{
    struct sl_archive_post posts[BATCH_POSTS];
    redisReply *reply = NULL;
    int r;

    *ret_count = 0;
    begin(call, &sl_script_archive_take, thread, user);
    sl_call_add_id(call, BATCH_POSTS);
    sl_call_add_str(call, sl_archive_identity(archive));
    r = send(thread, call, &reply, reterr);
    if (r == -EMEDIUMTYPE)
        sl_worker_thread_put_off(thread);
    if (r == 0)
        r = read_taken(reply, user, posts, reterr);
    if (r == 0 && reply->elements > 0) {
        *ret_count = reply->elements;
        r = note(thread, archive, sl_archive_store(archive, posts, *ret_count, reterr), reterr);
        if (r == 0)
            r = drop(thread, call, user, posts, *ret_count, reterr);
    }
    freeReplyObject(reply);
    return r;
}

int sl_archive_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                        struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    struct sl_archive *archive;
    size_t moved = BATCH_POSTS;
    uint64_t user, batches = 0;
    int r;

    r = sl_worker_thread_archive(thread, &archive, reterr);
    if (r == 0)
        r = sl_task_field_id(task, "user", &user, reterr);
    if (r == 0)
        r = sl_id_check(user, sl_worker_thread_meta(thread), reterr);
    while (r == 0 && moved == BATCH_POSTS) {
        char progress[SL_ID_TEXT_SIZE];

        if (batches > 0)
            r = sl_worker_thread_save(thread, task, sl_slice_str(sl_id_print(batches, progress)),
                                      reterr);
        if (r == 0)
            r = move_batch(thread, &call, archive, user, &moved, reterr);
        batches++;
    }
    sl_call_done(&call);
    return r;
}

int sl_unarchive_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                          struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    struct sl_archive *archive;
    uint64_t post;
    int r;

    r = sl_worker_thread_archive(thread, &archive, reterr);
    if (r == 0)
        r = sl_task_field_id(task, "post", &post, reterr);
    if (r == 0)
        r = sl_id_check(post, sl_worker_thread_meta(thread), reterr);
    if (r == 0)
        r = note(thread, archive, sl_archive_erase(archive, &post, 1, reterr), reterr);
    if (r == 0 && sl_worker_thread_cache(thread)) /* not required, see src/cache/cache.h */
        sl_cache_drop(sl_worker_thread_cache(thread),
                      &(struct sl_cache_item){SL_CACHE_POST, post, SL_SLICE_NONE}, 1);
    if (r == 0) {
        begin(&call, &sl_script_archive_erased, thread, post);
        r = send(thread, &call, &reply, reterr);
    }
    freeReplyObject(reply);
    sl_call_done(&call);
    return r;
}
