/* src/tasks/worker_archive.h - makes sure that a worker uses the archive that holds the database's
 * posts. For worker.c and worker_thread.c.
 *
 * When the first posts are archived, each shard stores the identity of the archive (`archive_id` of
 * `meta`, archive_take.lua). From then on workers use no other archive and create none: if it is
 * missing, it was removed or is not mounted, and posts written to a second archive would hide the
 * loss of the first. */
#pragma once

#include "base/failure.h"
#include "src/tasks/worker_thread.h"

/* Reads through `link` what the database knows about its archive. 0; a negative errno. */
int sl_worker_archive_find(struct sl_worker *worker, struct sl_redis_link *link,
                           struct failure *reterr);

/* Opens the archive of the thread. 0; -ENOENT: there is none, though posts have been archived;
 * -ESTALE: another archive, or that of another database; else as sl_archive_open(). A failure is
 * recorded in Redis, for /metrics and `sluice tasks`. */
int sl_worker_archive_open(struct sl_worker_thread *thread, struct failure *reterr);

/* Replaces the identity of the archive in the database by that of the worker's, because the
 * operator has given up the old archive. */
int sl_worker_archive_accept(struct sl_worker *worker, struct sl_redis_link *link,
                             struct failure *reterr);
