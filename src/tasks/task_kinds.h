/* src/tasks/task_kinds.h - what is to be done for each kind of task.
 *
 * A kind is a name that scripts give to enqueue() and a function that does it, by calls to Redis:
 *
 *     static int run(struct sl_worker_thread *thread, const struct sl_task *task,
 *                    struct failure *reterr)
 *     {
 *         ...
 *         r = sl_task_field_id(task, "user", &user, reterr);
 *         if (r == 0)
 *             r = sl_x_call(&call, sl_worker_thread_meta(thread), user, reterr);
 *         return sl_worker_thread_apply(thread, &call, r, reterr);
 *     }
 *
 * It may be run again after it was done or cut off at any point, beside itself in another worker,
 * and behind a later task about the same things: none of this may change what is seen in the end.
 * A task of many steps saves where it is (sl_worker_thread_save()) and goes on from task->progress.
 *
 * 0: done. A negative errno: it is tried again later, after some tries it is put to the dead
 * letters with *reterr's text. That Redis is away counts for nothing: then the task is run again
 * from its beginning as soon as Redis is back. Nor does a try that the task has put off
 * (sl_worker_thread_put_off()). */
#pragma once

#include "base/failure.h"
#include "src/call/call.h"
#include "src/model/database.h"
#include "src/tasks/tasks.h"

struct redisReply;
struct sl_archive;
struct sl_cache;
struct sl_worker_thread; /* src/tasks/worker_thread.h */

typedef int (*sl_task_run_fn)(struct sl_worker_thread *thread, const struct sl_task *task,
                              struct failure *reterr);

/* NULL: there is no such kind. */
sl_task_run_fn sl_task_kind_find(struct sl_slice kind);

/* ---- what a task has at hand (src/tasks/worker_thread.c) ---- */

const struct sl_meta *sl_worker_thread_meta(const struct sl_worker_thread *thread);

/* Sends a call whose builder returned `built` (below 0: returns that) and waits for the reply,
 * which the caller frees; it may hold an error of the call itself, as its parser tells. Renews the
 * lease when that is due. 0; a negative errno: no reply, the task can only return it. */
int sl_worker_thread_call(struct sl_worker_thread *thread, struct sl_call *call, int built,
                          struct redisReply **ret_reply, struct failure *reterr);

/* A call whose answer says no more than that it was done; ends the call, too. 0; as
 * above, or as sl_reply_check(). */
int sl_worker_thread_apply(struct sl_worker_thread *thread, struct sl_call *call, int built,
                           struct failure *reterr);

/* As sl_worker_thread_call() for many in one round trip. On success every reply is there. */
int sl_worker_thread_call_many(struct sl_worker_thread *thread, struct sl_call *calls, size_t count,
                               struct redisReply **ret_replies, struct failure *reterr);

/* Keeps how far the task has come: what a later try finds in task->progress. `progress` is not
 * empty. 0; a negative errno, as sl_worker_thread_call(). */
int sl_worker_thread_save(struct sl_worker_thread *thread, const struct sl_task *task,
                          struct sl_slice progress, struct failure *reterr);

/* The archive that the worker was given, opened again where it has been replaced. 0; -ENOTSUP:
 * none; else as sl_worker_archive_open(), and the task has been put off. */
int sl_worker_thread_archive(struct sl_worker_thread *thread, struct sl_archive **ret_archive,
                             struct failure *reterr);

/* The cache that the worker was given; NULL: none. */
struct sl_cache *sl_worker_thread_cache(struct sl_worker_thread *thread);

/* The task fails now, but for no reason of its own: it is to be tried again later, as often as it
 * takes, while other tasks are run. */
void sl_worker_thread_put_off(struct sl_worker_thread *thread);
