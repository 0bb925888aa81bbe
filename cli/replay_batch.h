/* cli/replay_batch.h - sends events to Redis, many at a time.
 *
 * A batch is sent as pipelines: first new users are created, then all events follow in order. If an
 * event refers to a post of its own batch, the batch is sent first, because the new id of that post
 * must be known. */
#pragma once

#include "cli/database.h"
#include "cli/replay_event.h"

struct replay_batch;

struct replay_counts {
    uint64_t taken;                   /* events added to the batches */
    uint64_t done[REPLAY_KIND_COUNT]; /* of these so far */
    uint64_t users_made;
};

/* Line `number` of the file cannot be replayed. */
typedef void (*replay_refuse_fn)(void *context, size_t number, const char *why);

/* NULL: out of memory. */
struct replay_batch *replay_batch_new(struct database *database, replay_refuse_fn refuse,
                                      void *context);
void replay_batch_free(struct replay_batch *batch); /* events in it are not sent */

/* Adds the event of a line, or refuses it; sends a full batch. 0; -ENOMEM, or as
 * sl_redis_link_run_many(). */
int replay_batch_add(struct replay_batch *batch, struct sl_slice line, size_t number,
                     struct failure *reterr);
/* Sends the batch. The same errors. */
int replay_batch_send(struct replay_batch *batch, struct failure *reterr);

bool replay_batch_is_empty(const struct replay_batch *batch);
const struct replay_counts *replay_batch_counts(const struct replay_batch *batch);
