/* cli/replay_batch.h - events on their way to Redis, many at a time.
 *
 * A batch goes to Redis as pipelines: first whoever is new is made a user, then all events in their
 * order. An event that refers to a post of its own batch is preceded by the batch, for that post's
 * new id must be known first. */
#pragma once

#include "cli/database.h"
#include "cli/replay_event.h"

struct replay_batch;

struct replay_counts {
    uint64_t taken;                   /* events that came into the batch */
    uint64_t done[REPLAY_KIND_COUNT]; /* of these so far */
    uint64_t users_made;
};

/* Line `number` of the file cannot be done. */
typedef void (*replay_refuse_fn)(void *context, size_t number, const char *why);

/* NULL: out of memory. */
struct replay_batch *replay_batch_new(struct database *database, replay_refuse_fn refuse,
                                      void *context);
void replay_batch_free(struct replay_batch *batch); /* what is in it is not sent */

/* Takes the event of a line, or refuses it; sends a batch that is full. 0; -ENOMEM, or as
 * sl_redis_link_run_many(). */
int replay_batch_add(struct replay_batch *batch, struct sl_slice line, size_t number,
                     struct failure *reterr);
/* Sends what there is. The same errors. */
int replay_batch_send(struct replay_batch *batch, struct failure *reterr);

bool replay_batch_is_empty(const struct replay_batch *batch);
const struct replay_counts *replay_batch_counts(const struct replay_batch *batch);
