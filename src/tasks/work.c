/* work.c - whether a task failed or Redis did is decided where calls are made: sl_work_run() notes
 * it in `is_away`, and then the task is run again instead of being blamed. The leases of all that
 * the thread holds are renewed whenever a third of a lease has passed between two calls of a task.
 */
#include "src/tasks/work.h"

#include <errno.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "src/call/reply.h"

enum { FIRST_PAUSE_MS = 50, LAST_PAUSE_MS = 1000 };

void sl_work_tell(const struct sl_work *work, enum sl_worker_news news, const struct sl_task *task,
                  const char *text)
{
    const struct sl_worker_options *options = &work->worker->options;

    if (options->tell)
        options->tell(options->context, news, task, text);
}

bool sl_work_is_stopping(const struct sl_work *work)
{
    return atomic_load(&work->worker->is_stopping);
}

/* ---- calls, and Redis that may be away ---- */

/* Errors that say nothing about the call: any other would have got the same. */
static bool is_of_redis(int error)
{
    static const int errors[] = {-EAGAIN, -EACCES, -EROFS, -ENOSPC, -ENODATA};

    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (error == errors[i])
            return true;
    }
    return false;
}

/* The database is not the one that we were made for: nothing more can be done here. */
static void give_up(struct sl_work *work, const struct failure *why)
{
    struct sl_worker *worker = work->worker;

    if (!atomic_flag_test_and_set(&worker->has_given_up))
        worker->why = *why;
    atomic_store(&worker->is_stopping, true);
}

int sl_work_run(struct sl_work *work, struct sl_call *calls, size_t count, redisReply **ret_replies,
                struct failure *reterr)
{
    int r = sl_redis_link_run_many(work->link, calls, count, ret_replies, reterr);

    work->is_away = r < 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct failure failure;
        int error = sl_reply_check(ret_replies[i], &failure);

        if (error == -ESTALE)
            give_up(work, &failure);
        if (error == -ESTALE || is_of_redis(error)) {
            failure_set(reterr, error, "%s", failure.text);
            work->is_away = true;
            r = error;
        }
    }
    for (size_t i = 0; r < 0 && i < count; i++) {
        freeReplyObject(ret_replies[i]);
        ret_replies[i] = NULL;
    }
    if (r == 0 && work->told_away) {
        work->told_away = false;
        sl_work_tell(work, SL_WORKER_REDIS_BACK, NULL, NULL);
    }
    if (r == 0)
        backoff_reset(&work->backoff);
    return r;
}

bool sl_work_wait(struct sl_work *work, const struct failure *why)
{
    uint32_t wait_ms = backoff_next_ms(&work->backoff, FIRST_PAUSE_MS, LAST_PAUSE_MS);
    struct timespec pause = {wait_ms / 1000, (long)(wait_ms % 1000) * 1000000};

    if (!work->told_away) {
        work->told_away = true;
        sl_work_tell(work, SL_WORKER_REDIS_AWAY, NULL, why->text);
    }
    if (sl_work_is_stopping(work))
        return false;
    nanosleep(&pause, NULL);
    return !sl_work_is_stopping(work);
}

int sl_work_insist(struct sl_work *work, int built, redisReply **ret_reply, struct failure *reterr)
{
    int r = built;

    while (r == 0) {
        r = sl_work_run(work, &work->call, 1, ret_reply, reterr);
        if (r == 0 || !work->is_away || !sl_work_wait(work, reterr))
            break;
        r = 0;
    }
    return r;
}

/* ---- what a task has at hand ---- */

const struct sl_meta *sl_work_meta(const struct sl_work *work)
{
    return &work->worker->meta;
}

static int save(struct sl_work *work, const struct sl_task *task, struct sl_slice progress,
                struct failure *reterr)
{
    redisReply *reply = NULL;
    int r;

    r = sl_task_save_call(&work->call, &work->worker->meta, task, work->consumer, progress, reterr);
    if (r == 0)
        r = sl_work_run(work, &work->call, 1, &reply, reterr);
    if (r == 0)
        r = sl_task_save_reply(reply, reterr);
    freeReplyObject(reply);
    return r;
}

/* 0; -ECANCELED: the task that is being run is somebody else's. */
static int renew_when_due(struct sl_work *work, struct failure *reterr)
{
    uint64_t now_ms = clock_monotonic_ms();
    int result = 0;

    if (now_ms - work->renewed_ms < work->worker->options.lease_ms / 3)
        return 0;
    for (size_t i = work->at; i < work->task_count; i++) {
        int r;

        if (!work->tasks[i].entry.data)
            continue;
        r = save(work, &work->tasks[i], SL_SLICE_NONE, reterr);
        if (r < 0 && r != -ECANCELED)
            return r;
        if (r == -ECANCELED && i == work->at)
            result = r;
        else if (r == -ECANCELED)
            work->tasks[i].entry = SL_SLICE_NONE;
    }
    work->renewed_ms = now_ms;
    return result;
}

int sl_work_call_many(struct sl_work *work, struct sl_call *calls, size_t count,
                      struct redisReply **ret_replies, struct failure *reterr)
{
    int r = renew_when_due(work, reterr);

    return r < 0 ? r : sl_work_run(work, calls, count, ret_replies, reterr);
}

int sl_work_call(struct sl_work *work, struct sl_call *call, int built,
                 struct redisReply **ret_reply, struct failure *reterr)
{
    return built < 0 ? built : sl_work_call_many(work, call, 1, ret_reply, reterr);
}

int sl_work_apply(struct sl_work *work, struct sl_call *call, int built, struct failure *reterr)
{
    redisReply *reply = NULL;
    int r;

    r = sl_work_call(work, call, built, &reply, reterr);
    if (r == 0)
        r = sl_reply_check(reply, reterr);
    freeReplyObject(reply);
    sl_call_done(call);
    return r;
}

int sl_work_save(struct sl_work *work, const struct sl_task *task, struct sl_slice progress,
                 struct failure *reterr)
{
    return save(work, task, progress, reterr);
}

struct sl_archive *sl_work_archive(struct sl_work *work)
{
    return work->archive;
}

void sl_work_put_off(struct sl_work *work)
{
    work->is_put_off = true;
}

struct sl_cache *sl_work_cache(struct sl_work *work)
{
    return work->cache;
}
