/* src/tasks/task_kinds.h - the kinds of tasks, and what their functions may use.
 *
 * A kind is a name, which scripts pass to enqueue(), and a function that runs the task by calls to
 * Redis:
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
 * A task may be run again after it was completed or interrupted at any point, at the same time in
 * another worker, and after a later task about the same objects. None of this may change the final
 * result. A task of many steps saves its progress (sl_worker_thread_save()) and continues from
 * task->progress.
 *
 * Returns 0: done. A negative errno: the task is tried again later; after its last try it becomes a
 * dead letter with *reterr as its text. Failures because Redis is away do not count as tries: the
 * task is run again from its beginning when Redis is back. Neither do tries that the task has put
 * off (sl_worker_thread_put_off()). */
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

/* ---- functions for tasks (src/tasks/worker_thread.c) ---- */

const struct sl_meta *sl_worker_thread_meta(const struct sl_worker_thread *thread);

/* Sends a call whose builder returned `built` (below 0: returns that) and waits for the reply,
 * which the caller frees. The reply may contain an error of the call, which its parser reports.
 * Renews the lease when that is due. 0; a negative errno: no reply, the task can only return it. */
int sl_worker_thread_call(struct sl_worker_thread *thread, struct sl_call *call, int built,
                          struct redisReply **ret_reply, struct failure *reterr);

/* Sends a call whose answer only says whether it was done, and ends the call with sl_call_done().
 * 0; errors as sl_worker_thread_call() and sl_reply_check(). */
int sl_worker_thread_apply(struct sl_worker_thread *thread, struct sl_call *call, int built,
                           struct failure *reterr);

/* Like sl_worker_thread_call() for many calls in one round trip. On success every reply is
 * there. */
int sl_worker_thread_call_many(struct sl_worker_thread *thread, struct sl_call *calls, size_t count,
                               struct redisReply **ret_replies, struct failure *reterr);

/* Saves the progress of the task, which a later try finds in task->progress. `progress` must not be
 * empty. 0; a negative errno as sl_worker_thread_call(). */
int sl_worker_thread_save(struct sl_worker_thread *thread, const struct sl_task *task,
                          struct sl_slice progress, struct failure *reterr);

/* The worker's archive, reopened if it has been replaced. 0; -ENOTSUP: there is none; else as
 * sl_worker_archive_open(), and the task has been put off. */
int sl_worker_thread_archive(struct sl_worker_thread *thread, struct sl_archive **ret_archive,
                             struct failure *reterr);

/* The worker's cache; NULL: none. */
struct sl_cache *sl_worker_thread_cache(struct sl_worker_thread *thread);

/* Lets the current try fail without counting it: the task is tried again later, as often as
 * necessary, while other tasks run. */
void sl_worker_thread_put_off(struct sl_worker_thread *thread);
