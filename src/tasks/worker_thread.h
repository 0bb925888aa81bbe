/* src/tasks/worker_thread.h - one thread of a worker: its connection to a Redis that may be away,
 * and the leases of the tasks that it holds. For worker.c, which has the threads; what a task sees
 * of it is in src/tasks/task_kinds.h. */
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

/* One thread, with what it holds. */
struct sl_worker_thread {
    struct sl_worker *worker;
    pthread_t id;
    struct sl_redis_link *link;
    struct sl_archive *archive; /* NULL: the worker has none, or it has been lost */
    struct sl_cache *cache;     /* NULL: the worker has none */
    char consumer[SL_CONSUMER_SIZE];
    struct sl_call call;   /* of the thread's own */
    struct sl_task *tasks; /* held from `at` on; without entry: lost to somebody else */
    size_t task_count, at;
    uint64_t renewed_ms; /* when the leases of all of them were new */
    bool is_away;        /* the last call failed because Redis is away or refuses to work */
    bool told_away;
    bool is_put_off;        /* the task that is run says that it is not to be blamed */
    struct backoff backoff; /* of the tries to reach Redis */
};

struct sl_worker {
    struct sl_worker_options options;
    struct sl_meta meta;
    atomic_bool is_stopping;
    atomic_uint_fast64_t claim_ms;                   /* when claiming is due next */
    enum sl_archive_mode archive_mode;               /* see src/tasks/worker_archive.h */
    char archive_identity[SL_ARCHIVE_IDENTITY_SIZE]; /* that posts went to; "": none yet */
    struct sl_worker_thread *threads;                /* options.concurrency of them */
    struct {
        pthread_mutex_t turn;   /* of one thread at a time */
        uint32_t shard;         /* the one to be asked next */
        struct backoff backoff; /* while no shard has a task */
    } search;                   /* for tasks in a cluster */
    atomic_flag has_given_up;
    struct failure why; /* of the first thread that has given up */
};

/* To whoever wants to know. */
void sl_worker_thread_tell(const struct sl_worker_thread *thread, enum sl_worker_news news,
                           const struct sl_task *task, const char *text);

bool sl_worker_thread_is_stopping(const struct sl_worker_thread *thread);

/* Sends calls. 0 and all replies; or a negative errno and none: Redis is away or refuses to work,
 * which thread->is_away says then. With -ESTALE, which is another database, the worker stops. */
int sl_worker_thread_run(struct sl_worker_thread *thread, struct sl_call *calls, size_t count,
                         struct redisReply **ret_replies, struct failure *reterr);

/* The same for one call, which is not tried again. */
int sl_worker_thread_try(struct sl_worker_thread *thread, struct sl_call *call,
                         struct redisReply **ret_reply, struct failure *reterr);

/* Redis is there again, says a thread that was told of its absence. sl_worker_thread_run() says so
 * by itself, but not of a cluster, of which a part may be away. */
void sl_worker_thread_tell_back(struct sl_worker_thread *thread);

/* Waits a moment for Redis; false: no more, the worker stops. */
bool sl_worker_thread_wait(struct sl_worker_thread *thread, const struct failure *why);

/* Sends thread->call, as often as it takes. 0 and the reply; a negative errno: `built` is one, or
 * the worker stops while Redis is away. */
int sl_worker_thread_insist(struct sl_worker_thread *thread, int built,
                            struct redisReply **ret_reply, struct failure *reterr);
