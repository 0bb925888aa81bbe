/* src/tasks/worker.h - a worker, which runs the tasks of all shards until it is stopped.
 *
 *     r = sl_worker_new(&address, &meta, &options, &worker, &failure);
 *     if (r == 0)
 *         r = sl_worker_run(worker, &failure);      (elsewhere, a signal handler: sl_worker_stop())
 *     sl_worker_free(worker);
 *
 * Any number of workers may run at the same time, in several processes and on several machines; the
 * consumer group distributes the tasks. If one is killed nothing is lost: its tasks are claimed by
 * another when their lease has expired. While Redis is away, a worker waits for it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/export.h"
#include "base/failure.h"
#include "src/model/database.h"
#include "src/redis/redis_address.h"
#include "src/tasks/tasks.h"

struct sl_worker;

/* What a worker reports while it runs. */
enum sl_worker_news {
    SL_WORKER_TASK_DONE,
    SL_WORKER_TASK_LATER, /* it failed and will be tried again; `text` says why */
    SL_WORKER_TASK_DEAD,  /* it failed for the last time */
    SL_WORKER_TASK_LOST,  /* another worker has taken it over because its lease had expired */
    SL_WORKER_REDIS_AWAY, /* reported once until it is back; `text` says why */
    SL_WORKER_REDIS_BACK,
    SL_WORKER_DROPS, /* at the start: the settings make old posts be dropped */
    SL_WORKER_NEWS,  /* the number of kinds */
};

/* `task` is NULL for news about Redis; `text` may be NULL. Called from all threads of the
 * worker. */
typedef void (*sl_worker_tell_fn)(void *context, enum sl_worker_news news,
                                  const struct sl_task *task, const char *text);

struct sl_worker_options {
    uint32_t concurrency; /* tasks at the same time, each on its own thread and connection; 0: 4 */
    uint32_t lease_ms;    /* how long a silent worker keeps its tasks; 0: 30,000 */
    bool until_empty;     /* return when no task is left, done or dead */
    const char *archive;  /* its URL (src/archive/archive.h); created if it does not exist and
                             nothing has been archived yet; NULL: no archive, and tasks that need
                             one fail */
    bool accept_archive;  /* accept this archive even if the posts of the database went to another
                             one; what it lacks is lost */
    const char *cache;    /* its URL (src/cache/cache.h); posts erased from the archive are removed
                             from it; NULL: none */
    sl_worker_tell_fn tell; /* may be NULL */
    void *context;          /* for `tell` */
};

/* Connects. `meta` is that of sl_redis_link_meta(). 0; -ECONNREFUSED and similar: Redis does not
 * answer; -ENOENT, -ESTALE: posts have been archived, and the archive is missing or another one;
 * -ENOMEM; else as sl_archive_open() and sl_cache_open(). */
SL_EXPORT int sl_worker_new(const struct sl_redis_address *address, const struct sl_meta *meta,
                            const struct sl_worker_options *options, struct sl_worker **ret_worker,
                            struct failure *reterr);
SL_EXPORT void sl_worker_free(struct sl_worker *worker);

/* Works until sl_worker_stop() is called, finishes the tasks that it holds, and returns. If Redis
 * is away then, its tasks are left to be claimed by others. 0; -ESTALE: the database has been
 * replaced by one with another number of shards; another negative errno: a thread could not be
 * created. */
SL_EXPORT int sl_worker_run(struct sl_worker *worker, struct failure *reterr);

/* May be called from any thread or signal handler. The worker stops after a moment. */
SL_EXPORT void sl_worker_stop(struct sl_worker *worker);
