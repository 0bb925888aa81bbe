/* src/tasks/worker.h - runs the tasks of all shards, until it is told to stop.
 *
 *     r = sl_worker_new(&address, &meta, &options, &worker, &failure);
 *     if (r == 0)
 *         r = sl_worker_run(worker, &failure);      (elsewhere, a signal handler: sl_worker_stop())
 *     sl_worker_free(worker);
 *
 * Any number of workers may run beside each other, in any number of processes and on any machines:
 * the consumer group shares the tasks out. One that is killed loses nothing: what it held is
 * claimed by another when its lease has ended. While Redis is away a worker waits for it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/export.h"
#include "base/failure.h"
#include "src/model/database.h"
#include "src/redis/redis_address.h"
#include "src/tasks/tasks.h"

struct sl_worker;

/* What a worker has to tell while it runs. */
enum sl_worker_news {
    SL_WORKER_TASK_DONE,
    SL_WORKER_TASK_LATER, /* it failed and will be tried again: `text` says why */
    SL_WORKER_TASK_DEAD,  /* it failed for the last time */
    SL_WORKER_TASK_LOST,  /* somebody else has taken it over: its lease had ended */
    SL_WORKER_REDIS_AWAY, /* once until it is back: `text` says why */
    SL_WORKER_REDIS_BACK,
    SL_WORKER_DROPS, /* at the start: the settings say that old posts are dropped */
    SL_WORKER_NEWS,  /* how many kinds there are */
};

/* `task` is NULL for news of Redis, `text` may be. Called by every thread of the worker. */
typedef void (*sl_worker_tell_fn)(void *context, enum sl_worker_news news,
                                  const struct sl_task *task, const char *text);

struct sl_worker_options {
    uint32_t concurrency; /* tasks at once, each on a thread and a connection; 0: 4 */
    uint32_t lease_ms;    /* how long a silent worker keeps its tasks; 0: 30,000 */
    bool until_empty;     /* end when there is no task left, done or dead */
    const char *archive;  /* its URL (src/archive/archive.h), made where there is none and nothing
                             has been archived; NULL: no archive, and the tasks that need one fail */
    bool accept_archive;  /* whatever archive the posts of the database went to before: it is this
                             one from now on, and what it lacks is lost */
    const char *cache; /* its URL (src/cache/cache.h): what the archive erases is taken out of it;
                          NULL: none */
    sl_worker_tell_fn tell; /* NULL: nobody wants to know */
    void *context;          /* for `tell` */
};

/* Connects. `meta` as from sl_redis_link_meta(). 0; -ECONNREFUSED and its like: Redis does not
 * answer; as sl_archive_open() and sl_cache_open(), and -ENOENT, -ESTALE where posts have been
 * archived and the archive is gone, or another one; -ENOMEM. */
SL_EXPORT int sl_worker_new(const struct sl_redis_address *address, const struct sl_meta *meta,
                            const struct sl_worker_options *options, struct sl_worker **ret_worker,
                            struct failure *reterr);
SL_EXPORT void sl_worker_free(struct sl_worker *worker);

/* Works until sl_worker_stop(), finishes what it holds, returns. With Redis away at that moment
 * what it holds is left to be claimed. 0; -ESTALE: this is another database by now, with more or
 * fewer shards; another negative errno: no thread could be made. */
SL_EXPORT int sl_worker_run(struct sl_worker *worker, struct failure *reterr);

/* From any thread or a signal handler; takes a moment. */
SL_EXPORT void sl_worker_stop(struct sl_worker *worker);
