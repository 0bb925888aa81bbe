/* gateway/counts/count_bucket.h - what is counted of the events of one bucket.
 *
 * The same events in the same order give the same bytes. What of it depends on the order is which
 * groups are named, where there are more than COUNT_GROUPS_MAX: the first ones. Takes up to some
 * 150 KiB, of which groups are all but 4. */
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
    COUNT_KEY_BYTES = 32 /* a longer key is counted with the others */
};

struct count_bucket {
    uint64_t posts, deletes;
    struct distinct users;   /* authors of posts */
    struct hash_map *groups; /* key -> struct group; NULL: none yet */
    uint64_t other;          /* what the groups do not name */
};

/* The rules that an event matches, where it is counted by them, or its words, for trends. */
struct count_keys {
    const struct sl_slice *list;
    size_t count;
    const struct sl_words *words;
};

/* Of a map, by its south-western corner, in thousandths of a degree. */
struct count_cell {
    long west, south;
};

/* The cell that an event's point lies in, with sides of so many thousandths. false: it has none. */
bool count_cell_of(const struct sl_event_view *view, uint32_t side, struct count_cell *ret_cell);

/* How it is told. */
struct count_telling {
    uint64_t start_ms, end_ms; /* Unix times */
    uint32_t revision;         /* told again, for so many times; 0: for the first time */
    bool has_gap;              /* something of it cannot be had */
    bool is_partial;           /* it is not over: no id */
};

/* Begins as {0}. */
void count_bucket_done(struct count_bucket *bucket);
void count_bucket_clear(struct count_bucket *bucket);
/* `rules` NULL: none. 0; -ENOMEM: the bucket is no good any more. */
int count_bucket_add(struct count_bucket *bucket, const struct count_question *question,
                     const struct event *event, const struct count_keys *rules);
/* Does it depend on their order which groups are named? */
bool count_bucket_is_full(const struct count_bucket *bucket);

/* {"type":"counts",...}; `json` is failed when memory ran out. */
void count_bucket_print(const struct count_bucket *bucket, const struct count_question *question,
                        const struct count_telling *telling, struct buffer *json);
