/* gateway/counts/count_bucket.h - the counts of the events in one bucket.
 *
 * The same events in the same order give the same bytes. If there are more than COUNT_GROUPS_MAX
 * groups, the first ones are named; only this depends on the order. Uses up to about 150 KiB, of
 * which 4 are not for groups. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/hash_map.h"
#include "filters/words.h"
#include "gateway/counts/distinct.h"
#include "gateway/front/count_question.h"
#include "gateway/intake/event.h"

enum {
    COUNT_GROUPS_MAX = 1000,
    COUNT_KEY_BYTES = 32 /* longer keys are counted as `other` */
};

struct count_bucket {
    uint64_t posts, deletes;
    struct distinct users;   /* authors of posts */
    struct hash_map *groups; /* key -> struct group; NULL: none yet */
    uint64_t other;          /* in no named group */
};

/* The rules that an event matches, for counts by rule, or its words, for trends. */
struct count_keys {
    const struct sl_slice *list;
    size_t count;
    const struct sl_words *words;
};

/* The south-western corner of a map cell, in thousandths of a degree. */
struct count_cell {
    long west, south;
};

/* The cell of an event's point; its sides have `side` thousandths of a degree. false: no point. */
bool count_cell_of(const struct sl_event_view *view, uint32_t side, struct count_cell *ret_cell);

/* Members of the message about a bucket. */
struct count_telling {
    uint64_t start_ms, end_ms; /* Unix times */
    uint32_t revision;         /* how often it was corrected; 0: first message */
    bool has_gap;              /* events are missing */
    bool is_partial;           /* the bucket is still open: no id */
};

/* Initialize with {0}. */
void count_bucket_done(struct count_bucket *bucket);
void count_bucket_clear(struct count_bucket *bucket);
/* `rules` NULL: none. 0; -ENOMEM: the bucket can no longer be used. */
int count_bucket_add(struct count_bucket *bucket, const struct count_question *question,
                     const struct event *event, const struct count_keys *rules);
/* Whether the order of events decides which groups are named. */
bool count_bucket_is_full(const struct count_bucket *bucket);

/* Prints {"type":"counts",...}; if out of memory, `json` is marked as failed. */
void count_bucket_print(const struct count_bucket *bucket, const struct count_question *question,
                        const struct count_telling *telling, struct buffer *json);
