/* gateway/counts/counter.h - the buckets of one question, one after the other.
 *
 * Takes events as they pass: in the order of their ids, but for late ones. One bucket is open; its
 * owner closes it when everything up to its end has passed, and is given the message that tells of
 * it. What a counter cannot count as it comes, for its bucket is closed already, or was counted and
 * has not happened any more, is noted: then the owner counts again, from the log, from
 * counter_retell_from() on. Belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/counts/count_bucket.h"
#include "gateway/front/count_question.h"
#include "gateway/intake/event.h"
#include "gateway/intake/gap.h"

struct counter;

/* The first bucket is that of the event `from`; what is below that bucket is none of it. NULL: out
 * of memory. */
struct counter *counter_new(const struct count_question *question, uint64_t from);
/* One that counts again: from the first bucket of `counter` that must be, or from the one behind
 * `had`, the id of the last bucket that was told, if that is sooner. What was told before is told
 * again, as a revision, where something was noted. NULL: out of memory. */
struct counter *counter_new_again(const struct counter *counter, uint64_t had);
void counter_free(struct counter *counter); /* NULL is fine */

/* The id of the last bucket that is closed. */
uint64_t counter_closed(const struct counter *counter);
/* That of the open one. */
uint64_t counter_open(const struct counter *counter);

/* `rules` NULL: none. 0; -EAGAIN: it is of a later bucket, the open one must be closed first;
 * -ENOMEM. */
int counter_add(struct counter *counter, const struct event *event, const struct count_keys *rules);
/* Events with ids in (from, to] are missing. */
void counter_gap(struct counter *counter, uint64_t from, uint64_t to, enum gap_reason reason);

/* Closes the open bucket and opens the next. 0: *ret_message is one reference of the caller's, or
 * NULL if nothing is to be told of it; -ENOMEM: nothing has changed. */
int counter_close(struct counter *counter, struct event **ret_message);
/* What the open bucket has until now. NULL: out of memory. */
struct event *counter_partial(const struct counter *counter);

/* The first id of the first bucket that must be counted again; 0: none. */
uint64_t counter_retell_from(const struct counter *counter);
/* What `other` must count again, so must this one. */
void counter_join(struct counter *counter, const struct counter *other);
