/* gateway/delivery/segment.h - a sequence of events, and which lanes want which of them.
 *
 * Clients that catch up read segments: the ring (ring.h) is a list of segments, and so is what was
 * read from a log (log_cache.h). The events of a segment are matched once, however many clients
 * read it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/intake/event.h"

enum { SEGMENT_EVENTS = 128 };

struct segment_entry {
    struct event *event; /* NULL: not sent to clients and no mark, or refused */
    uint64_t id;         /* 0: published without the log */
    uint64_t previous;   /* the event before it in its shard's log; 0: none */
};

/* The entries that a lane wants. */
struct verdict {
    uint64_t lane;  /* its number; 0: an empty slot */
    uint32_t count; /* entries that have been matched, from the first on */
    uint64_t wanted[SEGMENT_EVENTS / 64];
};

struct segment {
    size_t count;
    size_t bytes;             /* memory of everything, by the last segment_count_bytes() */
    struct verdict *verdicts; /* open addressing, at most half full */
    size_t verdict_count, verdict_capacity;
    bool has_marks; /* of late events */
    bool has_holes; /* in a segment of a log: some entry does not follow the one before it */
    struct segment_entry entries[SEGMENT_EVENTS];
};

/* NULL: out of memory. */
struct segment *segment_new(void);
void segment_free(struct segment *segment);

/* There must be room. Takes a reference to the event. */
void segment_append(struct segment *segment, const struct segment_entry *entry);

/* The first entry with an id above `id`, in a segment sorted by id; segment->count: none. */
size_t segment_find_above(const struct segment *segment, uint64_t id);

/* The first entry after `index` and before `end` that does not follow the one before it, because
 * events between them were removed from the log. `end`: none. */
size_t segment_find_hole(const struct segment *segment, size_t index, size_t end);

/* NULL: none for this lane. Valid until one is added. */
struct verdict *segment_verdict(const struct segment *segment, uint64_t lane);
/* Finds or adds an empty one. NULL: out of memory. */
struct verdict *segment_add_verdict(struct segment *segment, uint64_t lane);

static inline void verdict_want(struct verdict *verdict, size_t i)
{
    verdict->wanted[i / 64] |= UINT64_C(1) << i % 64;
}

static inline bool verdict_wants(const struct verdict *verdict, size_t i)
{
    return verdict->wanted[i / 64] >> i % 64 & 1;
}

/* The first wanted index from this one on; verdict->count: none among those that were matched. */
size_t verdict_next(const struct verdict *verdict, size_t index);

/* Updates `bytes`: events grow with their frames, and a segment with its verdicts. */
void segment_count_bytes(struct segment *segment);
