/* src/tasks/tasks.h - the calls of the task queue: work for other shards, and work that takes long.
 *
 * A script adds a task to the stream `tasks` of its shard (enqueue() in common.lua). The consumer
 * group `workers` distributes the tasks. A worker holds a task for a lease, renews the lease while
 * it works, and finally reports the task as done or failed. A task whose worker is silent is
 * claimed by another, so each task runs at least once. Each kind of task is written so that running
 * it again, or late, changes nothing (src/tasks/task_kinds.c lists them).
 *
 * src/tasks/worker.h is the loop that makes these calls. */
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

/* A task held by a worker. The slices are those of the reply. */
struct sl_task {
    uint32_t shard;           /* of the stream that contains it */
    struct sl_slice entry;    /* its id in the stream: "1795223000000-0" */
    struct sl_slice kind;     /* absent: not written by our scripts */
    uint64_t id;              /* of the operation that added it; 0: absent or damaged */
    uint64_t tries;           /* tries without progress, including this one; 0: the first */
    bool is_exhausted;        /* no tries are left; do not run it again */
    struct sl_slice progress; /* as saved last; empty at first */
    const struct redisReply *fields;
};

/* A field that the script passed to enqueue(); absent if it did not. */
SL_EXPORT struct sl_slice sl_task_field(const struct sl_task *task, const char *name);
/* A field that contains an id. 0; -EBADMSG. */
SL_EXPORT int sl_task_field_id(const struct sl_task *task, const char *name, uint64_t *ret_id,
                               struct failure *reterr);

/* Takes the next new task of each shard for `consumer`, waiting for up to `block_ms` (0: not at
 * all; Redis checks this time only ten times a second). Not repeatable: if the answer is lost, its
 * tasks belong to a consumer that does not know them, until they are claimed. 0; -ENOMEM. */
SL_EXPORT int sl_task_read_call(struct sl_call *call, const struct sl_meta *meta,
                                const char *consumer, uint32_t block_ms, struct failure *reterr);
/* The same for one shard, without waiting. For clusters, where a call cannot concern two shards. */
SL_EXPORT int sl_task_read_shard_call(struct sl_call *call, uint32_t shard, const char *consumer,
                                      struct failure *reterr);
/* Takes over up to `count` tasks of a shard whose workers have been silent for `lease_ms`. */
SL_EXPORT int sl_task_claim_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                                 const char *consumer, uint32_t lease_ms, uint32_t count,
                                 struct failure *reterr);
/* Reads the tasks of either answer into an array of *ret_count, which the caller frees with
 * sl_tasks_free(). They are valid as long as the reply. `shard` is that of the claim, or
 * SL_SHARDS_MAX for a read. 0; -ENODATA: a shard has no consumer group (sl_task_group_call());
 * -ENOMEM; else as sl_reply_check(). */
SL_EXPORT int sl_tasks_reply(const struct redisReply *reply, uint32_t shard,
                             struct sl_task **ret_tasks, size_t *ret_count, struct failure *reterr);
SL_EXPORT void sl_tasks_free(struct sl_task *tasks); /* NULL is allowed */

/* Creates the consumer group of a shard. Normally it is created with the database; the answer is an
 * error if it exists. */
SL_EXPORT int sl_task_group_call(struct sl_call *call, uint32_t shard, struct failure *reterr);

/* Renews the lease, and saves `progress` unless it is absent. */
SL_EXPORT int sl_task_save_call(struct sl_call *call, const struct sl_meta *meta,
                                const struct sl_task *task, const char *consumer,
                                struct sl_slice progress, struct failure *reterr);
/* 0; -ECANCELED: another worker has taken the task over; else as sl_reply_check(). */
SL_EXPORT int sl_task_save_reply(const struct redisReply *reply, struct failure *reterr);

/* Reports the task as done. Check the answer with sl_reply_check(). */
SL_EXPORT int sl_task_done_call(struct sl_call *call, const struct sl_meta *meta,
                                const struct sl_task *task, struct failure *reterr);

/* Reports the task as failed: it is tried again later; after the last try it becomes a dead
 * letter. */
SL_EXPORT int sl_task_fail_call(struct sl_call *call, const struct sl_meta *meta,
                                const struct sl_task *task, const char *consumer, uint32_t lease_ms,
                                const char *why, struct failure *reterr);
/* Reports that the task cannot be done now, through no fault of its own: it is tried again in some
 * seconds, and the try does not count. */
SL_EXPORT int sl_task_put_off_call(struct sl_call *call, const struct sl_meta *meta,
                                   const struct sl_task *task, const char *consumer,
                                   uint32_t lease_ms, const char *why, struct failure *reterr);
/* The reply to both calls. 0; -ECANCELED: another worker has taken the task over; else as
 * sl_reply_check(). */
SL_EXPORT int sl_task_fail_reply(const struct redisReply *reply, bool *ret_is_dead,
                                 struct failure *reterr);

/* ---- for operators ---- */

enum { SL_TASK_WHY_SIZE = 256 }; /* longer texts are truncated */

struct sl_task_counts {
    uint64_t tasks;     /* not done */
    uint64_t taken;     /* of these: started, or waiting for another try */
    uint64_t oldest_ms; /* age of the oldest one; 0: there is none */
    uint64_t dead;
    uint64_t kept;                       /* answers to writes with a request id, rounded to five
                                            minutes */
    char archive_away[SL_TASK_WHY_SIZE]; /* why tasks wait for the archive; "": they do not */
};

SL_EXPORT int sl_task_counts_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                                  struct failure *reterr);
/* 0, or as sl_reply_check(). */
SL_EXPORT int sl_task_counts_reply(const struct redisReply *reply,
                                   struct sl_task_counts *ret_counts, struct failure *reterr);

/* Lists a batch of a shard's tasks, or of its dead letters, oldest first: up to `count` after the
 * entry `after` (NULL: from the beginning). Does not take the tasks. */
SL_EXPORT int sl_task_list_call(struct sl_call *call, uint32_t shard, const char *after,
                                uint32_t count, struct failure *reterr);
SL_EXPORT int sl_dead_list_call(struct sl_call *call, uint32_t shard, const char *after,
                                uint32_t count, struct failure *reterr);
/* Reads either batch like sl_tasks_reply(). For a dead letter `entry` is that of the letter, and
 * its fields `tries` and `error` say what happened. */
SL_EXPORT int sl_task_list_reply(const struct redisReply *reply, uint32_t shard,
                                 struct sl_task **ret_tasks, size_t *ret_count,
                                 struct failure *reterr);

/* Requeues a dead letter as a new task, or deletes it. */
SL_EXPORT int sl_dead_retry_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                                 struct sl_slice entry, struct failure *reterr);
SL_EXPORT int sl_dead_drop_call(struct sl_call *call, uint32_t shard, struct sl_slice entry,
                                struct failure *reterr);
/* The reply to both calls. 0; -ENOENT: there is no such letter; -ETIME: it is too old to be tried
 * again; else as sl_reply_check(). */
SL_EXPORT int sl_dead_reply(const struct redisReply *reply, struct failure *reterr);
