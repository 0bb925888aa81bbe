/* gateway/counts/counter.h - the buckets of one question, one after the other: counted, or picked.
 *
 * Takes events as they pass: in the order of their ids, but for late ones. One bucket is open; its
 * owner closes it when everything up to its end has passed, and is given what is to be told of it:
 * one message that counts its events, or (question.pick) those that are sent and how many are not.
 *
 * What a counter cannot count as it comes, for its bucket is closed already, or was counted and has
 * not happened any more, is noted: then the owner counts again, from the log, from
 * counter_retell_from() on. Of a bucket that was picked nothing is taken back: what comes late for
 * it is told by itself.
 *
 * One of trends (question.trends, trends.h) tells of each bucket what rises at its end, a message
 * for each kind of term. It begins to read two windows before the first bucket that it tells, and
 * says nothing of those between. What comes late, or has not happened any more, makes all wrong
 * that it has told since: so all of that is told again. Belongs to one thread. */
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

/* Begins with the bucket of what follows `had`; what is below that bucket is none of it. Of a
 * bucket that is picked, what lies at or below `had` is picked from, but not told, and what is
 * behind `until` is none of it (0: no end). NULL: out of memory. */
struct counter *counter_new(const struct count_question *question, const struct sl_cursor *had,
                            uint64_t until);
/* One that counts again: from the first bucket of `counter` that must be, or from the one behind
 * `had`, where its client stands, if that is sooner. What was told before is told again, as a
 * revision, where something was noted; of what is picked nothing is. `passed`: by shard, the last
 * that `counter` has been given; of what is picked, what comes behind that is new to the client.
 * With PICK_FIRST, the bucket of which the client has some goes on as it is: what was in it then
 * counts as it did then. NULL: out of memory. */
struct counter *counter_new_again(const struct counter *counter, const struct sl_cursor *had,
                                  const uint64_t *passed);
void counter_free(struct counter *counter); /* NULL is fine */

/* Of a client that has been told all that there is to tell. */
struct sl_cursor counter_cursor(const struct counter *counter);
/* The last id before the open bucket, and its own last one, which is its id. */
uint64_t counter_before(const struct counter *counter);
uint64_t counter_open(const struct counter *counter);
/* Of trends: nothing is told of what lies at or below this id; else 0. */
uint64_t counter_silent_until(const struct counter *counter);
/* Can its client be told the same from here on as others of the question, who have been told the
 * buckets with ids up to `closed`? Not if it lacks some of the open bucket, nor if it has been told
 * more elsewhere. */
bool counter_is_in_step(const struct counter *counter, uint64_t closed);

/* `rules` NULL: none. `tail`: of who is sent the event. 0; -EAGAIN: something is to be told first,
 * or it is of a later bucket, so that the open one must be closed first; -ENOMEM. */
int counter_add(struct counter *counter, struct event *event, const struct count_keys *rules,
                struct sl_slice tail);
/* Events with ids in (from, to] are missing. */
void counter_gap(struct counter *counter, uint64_t from, uint64_t to, enum gap_reason reason);

/* Closes the open bucket, which lies below `id`, and opens the next; where nothing is told of empty
 * ones, those below `id` are passed over. Nothing is left to tell before. Trends take more work
 * than one call should: no more is done than `*work` (trends.h), which is lessened. 0; 1: not yet,
 * it is to be called again before anything is added; -ENOMEM: the counter is no good any more. */
int counter_close(struct counter *counter, uint64_t id, size_t *work);
/* What is to be told next; `*ret_before`: of who has all before it. A picked event with a lower id
 * than something that was told before it says that it is late, and has no id. The caller ends it
 * with told_done(). 1; 0: nothing is; -ENOMEM. */
int counter_next(struct counter *counter, struct told *ret_told, struct sl_cursor *ret_before);
/* What the open bucket has until now. Not of trends. NULL: out of memory. */
struct event *counter_partial(const struct counter *counter);

/* The first id of the first bucket that must be counted again; 0: none. */
uint64_t counter_retell_from(const struct counter *counter);
/* What `other` must count again, so must this one. */
void counter_join(struct counter *counter, const struct counter *other);
