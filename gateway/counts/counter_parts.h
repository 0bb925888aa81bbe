/* gateway/counts/counter_parts.h - internal to counter: what its files share.
 *
 *     counter.c         buckets in succession, messages with counts, what is counted again
 *     counter_picks.c   when picking: what is sent, with cursors that fit the client
 *     counter_trends.c  for trends: the posts of a bucket, and its messages
 *
 * counter.c calls the other two, which call neither it nor each other. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/counts/count_bucket.h"
#include "gateway/counts/counter.h"
#include "gateway/counts/id_ranges.h"
#include "gateway/counts/pick_bucket.h"
#include "gateway/counts/told.h"
#include "gateway/counts/trends.h"

enum counter_kind { COUNTER_COUNTS, COUNTER_PICKS, COUNTER_TRENDS };

/* The members that every event needs are next to each other, from noted.count to `question`,
 * because with a thousand other counters they are not in the cache. */
struct counter {
    struct id_ranges gaps;          /* missing ids */
    struct id_ranges retelling;     /* the buckets up to `told` that are sent again */
    struct id_ranges noted;         /* to be counted again, from the first id that is needed */
    uint64_t open_first, open_last; /* ids of the open bucket */
    uint64_t first;                 /* lower ids are ignored */
    uint64_t told;                  /* buckets with ids up to this were sent before */
    enum counter_kind kind;
    uint32_t revision; /* of buckets that are sent again */
    struct count_bucket bucket;
    struct count_question question;
    uint64_t start_ms;        /* of the open bucket */
    uint64_t told_to;         /* id up to which a client has everything after taking all messages */
    uint64_t until;           /* when picking; 0: no end */
    struct told_list to_tell; /* in order */
    struct pick_bucket picks; /* for picking */
    struct trends *trends[TREND_OF_COUNT]; /* for trends; NULL: not requested */
    unsigned to_tell_of;   /* for trends: the kind that is printed next for the closing bucket */
    uint64_t silent_until; /* for trends: nothing is printed up to this id; else 0 */
    struct sl_cursor had;  /* when picking, nothing up to here is sent, */
    bool goes_on;          /* events of the open bucket up to `passed` were picked from before */
    uint64_t passed[SL_SHARDS_MAX]; /* later events are new to the client, even up to `had` or
                                       `told` */
};

static inline uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The last id before the open bucket. */
static inline uint64_t before_open(const struct counter *counter)
{
    return counter->open_first > 0 ? counter->open_first - 1 : 0;
}

/* A client has everything up to here. Picked events are sent within a bucket, too. */
static inline uint64_t told_to(const struct counter *counter)
{
    uint64_t before = before_open(counter);

    if (!told_list_is_empty(&counter->to_tell))
        return counter->told_to;
    if (counter->until && before > counter->until)
        before = counter->until;
    return greater(counter->told_to, before);
}

/* The following return 0 or -ENOMEM unless they say otherwise. */

/* All messages must have been taken. */
int counter_picks_add(struct counter *counter, struct event *event, struct sl_slice tail);
/* The open bucket ends. */
int counter_picks_close(struct counter *counter);
/* The position of the client. */
struct sl_cursor counter_picks_cursor(const struct counter *counter);
/* `told` has been taken, and is sent to a client that is at `before`. Replaces the cursor in its
 * event if that was late elsewhere, or does not fit this client. */
int counter_picks_place(struct counter *counter, const struct sl_cursor *before, struct told *told);

/* Nothing is printed up to the id before `from`. `*start_ms`: in: the first bucket that is printed;
 * out: the first that is read. */
int counter_trends_begin(struct counter *counter, uint64_t from, uint64_t *start_ms);
void counter_trends_done(struct counter *counter);
/* Whether the post can still be counted as if it had arrived in order. */
bool counter_trends_can_add(const struct counter *counter, const struct event *post);
int counter_trends_add(struct counter *counter, const struct event *post,
                       const struct sl_words *words);
/* The open bucket ends. 0; 1: call again; -ENOMEM. */
int counter_trends_close(struct counter *counter, size_t *work);
