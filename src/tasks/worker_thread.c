/* worker_thread.c - the calls of a thread decide whether a task failed or Redis did:
 * sl_worker_thread_run() records the latter in `is_away`, and the task is then run again without
 * counting a try. The leases of all tasks that the thread holds are renewed when a third of a lease
 * has passed between two calls of a task. */
#include "src/tasks/worker_thread.h"

#include <errno.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "src/call/reply.h"
#include "src/tasks/worker_archive.h"

enum { FIRST_PAUSE_MS = 50, LAST_PAUSE_MS = 1000 };

void sl_worker_thread_tell(const struct sl_worker_thread *thread, enum sl_worker_news news,
                           const struct sl_task *task, const char *text)
{
    const struct sl_worker_options *options = &thread->worker->options;

    if (options->tell)
        options->tell(options->context, news, task, text);
}

bool sl_worker_thread_is_stopping(const struct sl_worker_thread *thread)
{
    return atomic_load(&thread->worker->is_stopping);
}

/* ---- calls, and Redis that may be away ---- */

/* Errors that would have occurred with any other call, too. */
static bool is_of_redis(int error)
{
    static const int errors[] = {-EAGAIN, -EACCES, -EROFS, -ENOSPC, -ENODATA};

    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (error == errors[i])
            return true;
    }
    return false;
}

/* The database has been replaced by another one, so that nothing more can be done. */
static void give_up(struct sl_worker_thread *thread, const struct failure *why)
{
    struct sl_worker *worker = thread->worker;

    if (!atomic_flag_test_and_set(&worker->has_given_up))
        worker->why = *why;
    atomic_store(&worker->is_stopping, true);
}

/* Evaluates the result `r` of the link: see sl_worker_thread_run(). */
static int judge(struct sl_worker_thread *thread, int r, size_t count, redisReply **ret_replies,
                 struct failure *reterr)
{
    thread->is_away = r < 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct failure failure;
        int error = sl_reply_check(ret_replies[i], &failure);

        if (error == -ESTALE)
            give_up(thread, &failure);
        if (error == -ESTALE || is_of_redis(error)) {
            failure_set(reterr, error, "%s", failure.text);
            thread->is_away = true;
            r = error;
        }
    }
    for (size_t i = 0; r < 0 && i < count; i++) {
        freeReplyObject(ret_replies[i]);
        ret_replies[i] = NULL;
    }
    if (r == 0 && !thread->worker->meta.is_clustered)
        sl_worker_thread_tell_back(thread);
    return r;
}

int sl_worker_thread_run(struct sl_worker_thread *thread, struct sl_call *calls, size_t count,
                         redisReply **ret_replies, struct failure *reterr)
{
    int r = sl_redis_link_run_many(thread->link, calls, count, ret_replies, reterr);

    return judge(thread, r, count, ret_replies, reterr);
}

int sl_worker_thread_try(struct sl_worker_thread *thread, struct sl_call *call,
                         redisReply **ret_reply, struct failure *reterr)
{
    return judge(thread, sl_redis_link_try(thread->link, call, ret_reply, reterr), 1, ret_reply,
                 reterr);
}

void sl_worker_thread_tell_back(struct sl_worker_thread *thread)
{
    backoff_reset(&thread->backoff);
    if (!thread->told_away)
        return;
    thread->told_away = false;
    sl_worker_thread_tell(thread, SL_WORKER_REDIS_BACK, NULL, NULL);
}

bool sl_worker_thread_wait(struct sl_worker_thread *thread, const struct failure *why)
{
    uint32_t wait_ms = backoff_next_ms(&thread->backoff, FIRST_PAUSE_MS, LAST_PAUSE_MS);
    struct timespec pause = {wait_ms / 1000, (long)(wait_ms % 1000) * 1000000};

    if (!thread->told_away) {
        thread->told_away = true;
        sl_worker_thread_tell(thread, SL_WORKER_REDIS_AWAY, NULL, why->text);
    }
    if (sl_worker_thread_is_stopping(thread))
        return false;
    nanosleep(&pause, NULL);
    return !sl_worker_thread_is_stopping(thread);
}

int sl_worker_thread_call_with_retries(struct sl_worker_thread *thread, int built,
                                       redisReply **ret_reply, struct failure *reterr)
{
    int r = built;

    while (r == 0) {
        r = sl_worker_thread_run(thread, &thread->call, 1, ret_reply, reterr);
        if (r == 0 || !thread->is_away || !sl_worker_thread_wait(thread, reterr))
            break;
        r = 0;
    }
    return r;
}

/* ---- functions for tasks ---- */

const struct sl_meta *sl_worker_thread_meta(const struct sl_worker_thread *thread)
{
    return &thread->worker->meta;
}

static int save(struct sl_worker_thread *thread, const struct sl_task *task,
                struct sl_slice progress, struct failure *reterr)
{
    redisReply *reply = NULL;
    int r;

    r = sl_task_save_call(&thread->call, &thread->worker->meta, task, thread->consumer, progress,
                          reterr);
    if (r == 0)
        r = sl_worker_thread_run(thread, &thread->call, 1, &reply, reterr);
    if (r == 0)
        r = sl_task_save_reply(reply, reterr);
    freeReplyObject(reply);
    return r;
}

/* 0; -ECANCELED: another worker has taken over the current task. */
static int renew_when_due(struct sl_worker_thread *thread, struct failure *reterr)
{
    uint64_t now_ms = clock_monotonic_ms();
    int result = 0;

    if (now_ms - thread->renewed_ms < thread->worker->options.lease_ms / 3)
        return 0;
    for (size_t i = thread->at; i < thread->task_count; i++) {
        int r;

        if (!thread->tasks[i].entry.data)
            continue;
        r = save(thread, &thread->tasks[i], SL_SLICE_NONE, reterr);
        if (r < 0 && r != -ECANCELED)
            return r;
        if (r == -ECANCELED && i == thread->at)
            result = r;
        else if (r == -ECANCELED)
            thread->tasks[i].entry = SL_SLICE_NONE;
    }
    thread->renewed_ms = now_ms;
    return result;
}

int sl_worker_thread_call_many(struct sl_worker_thread *thread, struct sl_call *calls, size_t count,
                               struct redisReply **ret_replies, struct failure *reterr)
{
    int r = renew_when_due(thread, reterr);

    return r < 0 ? r : sl_worker_thread_run(thread, calls, count, ret_replies, reterr);
}

int sl_worker_thread_call(struct sl_worker_thread *thread, struct sl_call *call, int built,
                          struct redisReply **ret_reply, struct failure *reterr)
{
    return built < 0 ? built : sl_worker_thread_call_many(thread, call, 1, ret_reply, reterr);
}

int sl_worker_thread_apply(struct sl_worker_thread *thread, struct sl_call *call, int built,
                           struct failure *reterr)
{
    redisReply *reply = NULL;
    int r;

    r = sl_worker_thread_call(thread, call, built, &reply, reterr);
    if (r == 0)
        r = sl_reply_check(reply, reterr);
    freeReplyObject(reply);
    sl_call_done(call);
    return r;
}

int sl_worker_thread_save(struct sl_worker_thread *thread, const struct sl_task *task,
                          struct sl_slice progress, struct failure *reterr)
{
    return save(thread, task, progress, reterr);
}

void sl_worker_thread_put_off(struct sl_worker_thread *thread)
{
    thread->is_put_off = true;
}

int sl_worker_thread_archive(struct sl_worker_thread *thread, struct sl_archive **ret_archive,
                             struct failure *reterr)
{
    int r = 0;

    if (!thread->worker->options.archive)
        return failure_set(reterr, -ENOTSUP, "this worker has no archive");
    if (thread->archive && sl_archive_verify(thread->archive, NULL) == -ESTALE) {
        sl_archive_close(thread->archive);
        thread->archive = NULL;
    }
    if (!thread->archive)
        r = sl_worker_archive_open(thread, reterr);
    if (r < 0)
        sl_worker_thread_put_off(thread);
    else
        *ret_archive = thread->archive;
    return r;
}

struct sl_cache *sl_worker_thread_cache(struct sl_worker_thread *thread)
{
    return thread->cache;
}
