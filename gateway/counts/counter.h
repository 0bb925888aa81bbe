/* gateway/counts/counter.h - the buckets of one question, in succession: counted, or sampled
 * ("picked").
 *
 * Events are added in the order of their ids, except for late ones. One bucket is open. The owner
 * closes it when all events up to its end have passed, and receives what is to be sent: one message
 * with the counts, or (question.pick) the selected events and the number of the others.
 *
 * Some events cannot be counted in order, because their bucket is closed, or have been counted but
 * were lost since. The counter notes them, and then the owner counts again from the log, from
 * counter_retell_from() on. Picked events are never taken back; a late event of a closed bucket is
 * sent by itself.
 *
 * A counter of trends (question.trends, trends.h) prints what rises at the end of each bucket, one
 * message for each kind of term. It begins to read two windows before its first bucket, without
 * printing anything. A late or lost event invalidates everything printed since, so all of it is
 * printed again. Belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/counts/count_bucket.h"
#include "gateway/counts/told.h"
#include "gateway/front/count_question.h"
#include "gateway/intake/event.h"
#include "gateway/intake/gap.h"
#include "src/model/cursor.h"

struct counter;

/* Begins with the bucket of the first event after `had`; events before that bucket are ignored.
 * When picking, events up to `had` take part in the selection but are not sent, and events after
 * `until` are ignored (0: no end). NULL: out of memory. */
struct counter *counter_new(const struct count_question *question, const struct sl_cursor *had,
                            uint64_t until);
/* The same for a client from whose last bucket, or from earlier ones too, a rewind has lost events
 * while it was away: those with ids in (from, to]. These buckets are sent again, as revisions if it
 * has been sent them; with a pace, what was sent stays. NULL: out of memory. */
struct counter *counter_new_rewound(const struct count_question *question,
                                    const struct sl_cursor *had, uint64_t until, uint64_t from,
                                    uint64_t to);
/* A counter that counts again: from the first bucket of `counter` that needs it, or from the bucket
 * after `had`, the client's position, if that is earlier. `passed`: by shard, the last event that
 * was added to `counter`, or that its client came with; later ones are new to the client. Buckets
 * that were sent are sent again as revisions if events were noted for them, or if they have such
 * new events. Picked events are not sent again. With PICK_FIRST, a bucket that was sent partly
 * continues as it is: its earlier events count as they did then. NULL: out of memory. */
struct counter *counter_new_again(const struct counter *counter, const struct sl_cursor *had,
                                  const uint64_t *passed);
void counter_free(struct counter *counter); /* NULL is allowed */

/* The cursor of a client that has been sent all messages so far. */
struct sl_cursor counter_cursor(const struct counter *counter);
/* The last id before the open bucket, and the last id of the open bucket, which is its own id. */
uint64_t counter_before(const struct counter *counter);
uint64_t counter_open(const struct counter *counter);
/* Later events of the shard are new to its client. */
uint64_t counter_passed(const struct counter *counter, uint32_t shard);
/* For trends: nothing is printed for buckets up to this id; else 0. */
uint64_t counter_silent_until(const struct counter *counter);
/* Whether its client can be sent the same messages from now on as others with this question, who
 * have been sent the buckets up to `closed`. Not if it lacks events of the open bucket, or has been
 * sent more elsewhere. */
bool counter_is_in_step(const struct counter *counter, uint64_t closed);

/* `rules` NULL: none. `tail`: for a picked event. 0; -EAGAIN: messages must be taken first, or the
 * event belongs to a later bucket, so the open one must be closed first; -ENOMEM. */
int counter_add(struct counter *counter, struct event *event, const struct count_keys *rules,
                struct sl_slice tail);
/* Events of the shard with ids in (from, to] are missing. */
void counter_gap(struct counter *counter, uint32_t shard, uint64_t from, uint64_t to,
                 enum gap_reason reason);

/* Closes the open bucket, which must end below `id`, and opens the next one. If nothing is sent for
 * empty buckets, those below `id` are skipped. All messages must have been taken. Closing trends
 * may take long, so at most `*work` units are done and subtracted (trends.h). 0; 1: call again
 * before adding anything; -ENOMEM: the counter can no longer be used. */
int counter_close(struct counter *counter, uint64_t id, size_t *work);
/* Takes the next message or event to be sent. `*ret_before`: the cursor of a client that has
 * everything before it. A picked event with a lower id than one that was sent before is marked as
 * late, and has no id. The caller frees it with told_done(). 1; 0: there is none; -ENOMEM. */
int counter_next(struct counter *counter, struct told *ret_told, struct sl_cursor *ret_before);
/* A message about the open bucket so far. Not for trends. NULL: out of memory. */
struct event *counter_partial(const struct counter *counter);

/* The first id of the first bucket that must be counted again; 0: none. */
uint64_t counter_retell_from(const struct counter *counter);
/* From now on it is for several clients, who need not have what its first client had elsewhere: by
 * shard, events after `passed`, the last one that has passed here, are new to them. */
void counter_share(struct counter *counter, const uint64_t *passed);
/* Adds to this counter what `other` must count again. When picking, the clients of both have what
 * either has sent. */
void counter_join(struct counter *counter, const struct counter *other);
