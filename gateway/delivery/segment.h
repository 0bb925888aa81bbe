/* gateway/delivery/segment.h - a stretch of events in order, and which lanes want which of them.
 *
 * What clients that catch up read: the ring (ring.h) is a list of segments, and so is what has been
 * read of a log (log_cache.h). However many clients read a segment, its events are judged once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/intake/event.h"

enum { SEGMENT_EVENTS = 128 };

struct segment_entry {
    struct event *event; /* NULL: of no kind that clients get and no mark, or refused */
    uint64_t id;         /* 0: published without the log */
    uint64_t previous;   /* the event before it in its shard's log; 0: none */
};

/* One lane's wishes. */
struct verdict {
    uint64_t lane;  /* its number; 0: an empty slot */
    uint32_t count; /* entries that have been judged, from the first on */
    uint64_t wanted[SEGMENT_EVENTS / 64];
};

struct segment {
    size_t count;
    size_t bytes;             /* memory of it all, as of the last segment_count_bytes() */
    struct verdict *verdicts; /* open addressing, at most half full */
    size_t verdict_count, verdict_capacity;
    bool has_marks; /* of late events */
    bool has_holes; /* of one shard's log: some entry does not follow upon the one before it */
    struct segment_entry entries[SEGMENT_EVENTS];
};

/* NULL: out of memory. */
struct segment *segment_new(void);
void segment_free(struct segment *segment);

/* There is room. Takes a reference to the event. */
void segment_append(struct segment *segment, const struct segment_entry *entry);

/* The first entry with an id above `id`, of a segment that is in the order of ids; segment->count:
 * none. */
size_t segment_find_above(const struct segment *segment, uint64_t id);

/* The first entry behind `index` and before `end` that does not follow upon the one before it: what
 * was between them has been taken out of the log. `end`: none. */
size_t segment_find_hole(const struct segment *segment, size_t index, size_t end);

/* NULL: the lane has none. Valid until one is added. */
struct verdict *segment_verdict(const struct segment *segment, uint64_t lane);
/* Adds one, empty, unless there is one. NULL: out of memory. */
struct verdict *segment_add_verdict(struct segment *segment, uint64_t lane);

static inline void verdict_want(struct verdict *verdict, size_t i)
{
    verdict->wanted[i / 64] |= UINT64_C(1) << i % 64;
}

static inline bool verdict_wants(const struct verdict *verdict, size_t i)
{
    return verdict->wanted[i / 64] >> i % 64 & 1;
}

/* The first wanted index at or behind this one; verdict->count: none of those that were judged. */
size_t verdict_next(const struct verdict *verdict, size_t index);

/* Events grow with their frames, and a segment with its verdicts. */
void segment_count_bytes(struct segment *segment);
