/* src/tasks/tasks.h - the task queue: what is left to do for other shards, or takes long.
 *
 * A script leaves a task in the stream `tasks` of its shard (enqueue() in common.lua); the consumer
 * group `workers` shares the tasks out. Who takes one holds it for a lease, renews that while it
 * works, and at the end says done or failed. A task whose worker is not heard of any more is
 * claimed by another, so that it runs at least once; each kind of task is written so that running
 * it again, or late, changes nothing (src/tasks/task_kinds.c lists them).
 *
 * These are the calls; src/tasks/worker.h is the loop that makes them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/export.h"
#include "base/failure.h"
#include "base/slice.h"
#include "src/call/call.h"
#include "src/model/database.h"

struct redisReply;

/* A task that somebody holds. The slices are the reply's. */
struct sl_task {
    uint32_t shard;           /* in whose stream it stands */
    struct sl_slice entry;    /* its id there: "1795223000000-0" */
    struct sl_slice kind;     /* absent: nobody of us wrote it */
    uint64_t id;              /* of the operation that left it; 0: the same */
    uint64_t tries;           /* without progress, this one included; 0: the first */
    bool is_exhausted;        /* tried as often as it may: not to be run again */
    struct sl_slice progress; /* what was saved last, empty at first */
    const struct redisReply *fields;
};

/* What the script gave with enqueue(), absent when it did not. */
SL_EXPORT struct sl_slice sl_task_field(const struct sl_task *task, const char *name);
/* The same as an id. 0; -EBADMSG. */
SL_EXPORT int sl_task_field_id(const struct sl_task *task, const char *name, uint64_t *ret_id,
                               struct failure *reterr);

/* Takes the next new task of each shard for `consumer`, waiting up to `block_ms` for one (Redis
 * looks at the clock ten times a second only; 0: not at all). Not repeatable: a lost answer leaves
 * tasks with a consumer that does not know of them, until they are claimed. 0; -ENOMEM. */
SL_EXPORT int sl_task_read_call(struct sl_call *call, const struct sl_meta *meta,
                                const char *consumer, uint32_t block_ms, struct failure *reterr);
/* The same of one shard, without waiting. For a cluster, where no call can name two shards. */
SL_EXPORT int sl_task_read_shard_call(struct sl_call *call, uint32_t shard, const char *consumer,
                                      struct failure *reterr);
/* Takes over up to `count` tasks of a shard that nobody has been heard of for `lease_ms`. */
SL_EXPORT int sl_task_claim_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                                 const char *consumer, uint32_t lease_ms, uint32_t count,
                                 struct failure *reterr);
/* The tasks of either answer, in an array of *ret_count that is the caller's to sl_tasks_free();
 * they live as long as the reply. `shard` is that of a claim, and SL_SHARDS_MAX for a read.
 * 0; -ENODATA: a shard has no group of workers (sl_task_group_call()); -ENOMEM; else as
 * sl_reply_check(). */
SL_EXPORT int sl_tasks_reply(const struct redisReply *reply, uint32_t shard,
                             struct sl_task **ret_tasks, size_t *ret_count, struct failure *reterr);
SL_EXPORT void sl_tasks_free(struct sl_task *tasks); /* NULL is fine */

/* Makes the group of workers of a shard, which a database has from its beginning; the answer is an
 * error where there is one. */
SL_EXPORT int sl_task_group_call(struct sl_call *call, uint32_t shard, struct failure *reterr);

/* Renews the lease; with `progress`, keeps that for whoever goes on with the task. */
SL_EXPORT int sl_task_save_call(struct sl_call *call, const struct sl_meta *meta,
                                const struct sl_task *task, const char *consumer,
                                struct sl_slice progress, struct failure *reterr);
/* 0; -ECANCELED: the task is somebody else's by now; else as sl_reply_check(). */
SL_EXPORT int sl_task_save_reply(const struct redisReply *reply, struct failure *reterr);

/* The task is done. The answer needs sl_reply_check() only. */
SL_EXPORT int sl_task_done_call(struct sl_call *call, const struct sl_meta *meta,
                                const struct sl_task *task, struct failure *reterr);

/* The task failed: it is tried again later, or after its last try put to the dead letters. */
SL_EXPORT int sl_task_fail_call(struct sl_call *call, const struct sl_meta *meta,
                                const struct sl_task *task, const char *consumer, uint32_t lease_ms,
                                const char *why, struct failure *reterr);
/* The task cannot be done now, but for no reason of its own: it is tried again in some seconds, and
 * this was no try. */
SL_EXPORT int sl_task_put_off_call(struct sl_call *call, const struct sl_meta *meta,
                                   const struct sl_task *task, const char *consumer,
                                   uint32_t lease_ms, const char *why, struct failure *reterr);
/* For both. 0; -ECANCELED: the task is somebody else's by now; else as sl_reply_check(). */
SL_EXPORT int sl_task_fail_reply(const struct redisReply *reply, bool *ret_is_dead,
                                 struct failure *reterr);

/* ---- for people who look after the queue ---- */

enum { SL_TASK_WHY_SIZE = 256 }; /* cut off where it is longer */

struct sl_task_counts {
    uint64_t tasks;     /* not done */
    uint64_t taken;     /* of these: begun, or waiting for another try */
    uint64_t oldest_ms; /* age of the oldest; 0: there is none */
    uint64_t dead;
    uint64_t kept;                       /* answers to writes with a request id, to five minutes */
    char archive_away[SL_TASK_WHY_SIZE]; /* why tasks wait for the archive; "": they do not */
};

SL_EXPORT int sl_task_counts_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                                  struct failure *reterr);
/* 0, or as sl_reply_check(). */
SL_EXPORT int sl_task_counts_reply(const struct redisReply *reply,
                                   struct sl_task_counts *ret_counts, struct failure *reterr);

/* A batch of a shard's tasks, oldest first, or of its dead letters: up to `count` behind the entry
 * `after` (NULL: from the beginning). Takes nothing. */
SL_EXPORT int sl_task_list_call(struct sl_call *call, uint32_t shard, const char *after,
                                uint32_t count, struct failure *reterr);
SL_EXPORT int sl_dead_list_call(struct sl_call *call, uint32_t shard, const char *after,
                                uint32_t count, struct failure *reterr);
/* Tasks of either batch, as sl_tasks_reply(); of a dead letter `entry` is the letter's, and its
 * fields `tries` and `error` say what happened. */
SL_EXPORT int sl_task_list_reply(const struct redisReply *reply, uint32_t shard,
                                 struct sl_task **ret_tasks, size_t *ret_count,
                                 struct failure *reterr);

/* A dead letter is tried again, as if it were new, or thrown away. */
SL_EXPORT int sl_dead_retry_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                                 struct sl_slice entry, struct failure *reterr);
SL_EXPORT int sl_dead_drop_call(struct sl_call *call, uint32_t shard, struct sl_slice entry,
                                struct failure *reterr);
/* For both. 0; -ENOENT: there is no such letter; -ETIME: it is too old to be tried again; else as
 * sl_reply_check(). */
SL_EXPORT int sl_dead_reply(const struct redisReply *reply, struct failure *reterr);
