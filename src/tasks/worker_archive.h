/* src/tasks/worker_archive.h - which archive a worker may use: the one that the database's posts
 * went to. For worker.c and worker_thread.c.
 *
 * With the first posts that go to an archive each shard notes its identity (`archive_id` of `meta`,
 * archive_take.lua). From then on a worker takes no other and makes none; what is missing was
 * removed, or is not mounted, and posts would go to a second one while the first is lost. */
#pragma once

#include "base/failure.h"
#include "src/tasks/worker_thread.h"

/* Asks Redis through `link` what the database knows of its archive. 0; a negative errno. */
int sl_worker_archive_find(struct sl_worker *worker, struct sl_redis_link *link,
                           struct failure *reterr);

/* Opens the thread's. 0; -ENOENT: there is none, though posts have been archived; -ESTALE: it is
 * another one, or another database's; else as sl_archive_open(). A failure is noted in Redis, for
 * /metrics and `sluice tasks`. */
int sl_worker_archive_open(struct sl_worker_thread *thread, struct failure *reterr);

/* The operator has given the archive up that the database knows: it is to know the worker's
 * instead. */
int sl_worker_archive_accept(struct sl_worker *worker, struct sl_redis_link *link,
                             struct failure *reterr);
