/* src/tasks/worker_thread.h - one thread of a worker: its connection to Redis, and the leases of
 * its tasks. For worker.c, which owns the threads; what tasks may use is in
 * src/tasks/task_kinds.h. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/backoff.h"
#include "src/archive/archive.h"
#include "src/cache/cache.h"
#include "src/redis/redis_link.h"
#include "src/tasks/task_kinds.h"
#include "src/tasks/worker.h"

enum {
    SL_CONSUMER_SIZE = 96,
};

/* One thread and what it holds. */
struct sl_worker_thread {
    struct sl_worker *worker;
    pthread_t id;
    struct sl_redis_link *link;
    struct sl_archive *archive; /* NULL: the worker has none, or it was lost */
    struct sl_cache *cache;     /* NULL: the worker has none */
    char consumer[SL_CONSUMER_SIZE];
    struct sl_call call;   /* reused by the thread */
    struct sl_task *tasks; /* held from `at` on; without entry: taken over by another worker */
    size_t task_count, at;
    uint64_t renewed_ms; /* when all their leases were renewed last */
    bool is_away;        /* the last call failed because Redis is away or refuses to work */
    bool told_away;
    bool is_put_off;        /* the current task has called sl_worker_thread_put_off() */
    struct backoff backoff; /* between attempts to reach Redis */
};

struct sl_worker {
    struct sl_worker_options options;
    struct sl_meta meta;
    atomic_bool is_stopping;
    atomic_uint_fast64_t claim_ms;                   /* time of the next claim */
    enum sl_archive_mode archive_mode;               /* see src/tasks/worker_archive.h */
    char archive_identity[SL_ARCHIVE_IDENTITY_SIZE]; /* of the archive that holds the posts; "":
                                                        none yet */
    struct sl_worker_thread *threads;                /* options.concurrency of them */
    struct {
        pthread_mutex_t turn;   /* held by the thread that searches */
        uint32_t shard;         /* to be asked next */
        struct backoff backoff; /* while no shard has a task */
    } search;                   /* the search for tasks in a cluster */
    atomic_flag has_given_up;
    struct failure why; /* the failure of the first thread that has given up */
};

/* Calls options.tell, unless it is NULL. */
void sl_worker_thread_tell(const struct sl_worker_thread *thread, enum sl_worker_news news,
                           const struct sl_task *task, const char *text);

bool sl_worker_thread_is_stopping(const struct sl_worker_thread *thread);

/* Sends calls. 0 and all replies; or a negative errno and none: Redis is away or refuses to work,
 * as thread->is_away says. -ESTALE, another database, stops the worker. */
int sl_worker_thread_run(struct sl_worker_thread *thread, struct sl_call *calls, size_t count,
                         struct redisReply **ret_replies, struct failure *reterr);

/* The same for one call, without repeating it. */
int sl_worker_thread_try(struct sl_worker_thread *thread, struct sl_call *call,
                         struct redisReply **ret_reply, struct failure *reterr);

/* Reports that Redis is back, if the thread has reported that it was away. sl_worker_thread_run()
 * does this itself, except in a cluster, of which only a part may be away. */
void sl_worker_thread_tell_back(struct sl_worker_thread *thread);

/* Waits a moment before the next attempt to reach Redis. false: the worker is stopping. */
bool sl_worker_thread_wait(struct sl_worker_thread *thread, const struct failure *why);

/* Sends thread->call as often as necessary. 0 and the reply; a negative errno: `built` is one, or
 * the worker is stopping while Redis is away. */
int sl_worker_thread_call_with_retries(struct sl_worker_thread *thread, int built,
                                       struct redisReply **ret_reply, struct failure *reterr);
