/* gateway/delivery/ring.h - what has passed lately, in the order in which it passed: that of ids,
 * but for late events and gaps.
 *
 * Everything that live clients may be sent: logged events, events published without the log, and
 * gaps. Each gets a number of its own, its sequence, and stays until newer ones need the memory.
 * Who reads from the ring knows the sequence to go on with; who comes with ids (a cursor for each
 * shard) may begin with the oldest, if the ring has lost nothing behind those ids. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/delivery/segment.h"
#include "src/model/id.h"

struct ring {
    size_t max_bytes, segment_bytes;
    struct segment **segments; /* a ring: i is at (first_segment + i) & (capacity - 1) */
    size_t first_segment, segment_count, capacity;
    size_t bytes;                   /* of all segments, as counted when they were filled */
    uint64_t oldest, next;          /* sequences: of the oldest entry kept, of the next to come */
    uint64_t lost_unlogged;         /* those without an id below this sequence may be lost */
    uint32_t shards;                /* that have been heard of: all below this number */
    uint64_t lost[SL_SHARDS_MAX];   /* by shard: what lies behind this id is all here */
    uint64_t head[SL_SHARDS_MAX];   /* by shard: the newest id that has passed, or is in a gap */
    uint64_t passed[SL_SHARDS_MAX]; /* by shard: the last that has passed; after a rewind it is
                                       below `head` until its ids have caught up */
    uint64_t lost_of_all; /* no shard's events up to this id are here, but for late ones; `lost` is
                             above it where a gap has left the ring, which stands at its beginning,
                             or where something could not be kept */
    uint64_t newest;      /* the highest that has passed; of one shard, or is in a gap, and it goes
                             back with a rewind */
    struct ring_rewind {
        uint64_t sequence;    /* 0: none yet */
        uint64_t from, to;    /* event ids: exclusive, inclusive */
        uint64_t before;      /* sequence of the one before it; 0: there was none */
    } rewinds[SL_SHARDS_MAX]; /* by shard: the last gap that told of one */
    uint64_t last_rewind;     /* sequence of the last of them; 0: none yet */
    struct ring_missed {
        uint64_t id;       /* what came up to there last and could not be kept */
        uint64_t sequence; /* of what came next; 0: all was kept */
    } missed[SL_SHARDS_MAX];
    struct ring_late {
        uint64_t sequence;   /* of the last late event that has left the ring; 0: none */
        uint64_t unforeseen; /* of the last of those that was unforeseen; 0: none */
        uint64_t low;        /* the event before the first of those that left it in a row */
        bool goes_on;        /* nothing else of the shard has left it since */
        size_t kept;         /* late events that it still has */
    } late[SL_SHARDS_MAX];
    uint64_t late_shards; /* a bit for each of which some are kept */
};

void ring_init(struct ring *ring, size_t max_bytes);
void ring_done(struct ring *ring);

/* What happens in the shard after the event `id` (0: from the first one on) will pass; said before
 * anything of the shard does. */
void ring_begin_shard(struct ring *ring, uint32_t shard, uint64_t id);

/* Gives the event, or gap, its sequence and keeps it. When memory is short nothing is kept. */
void ring_append(struct ring *ring, struct event *event);
/* Nothing of what has passed is kept. */
void ring_clear(struct ring *ring);
/* What came up to `id` could not be kept, not even a gap. */
void ring_lose(struct ring *ring, uint32_t shard, uint64_t id);
/* The event `id` has passed, whether kept or not. */
void ring_pass(struct ring *ring, uint32_t shard, uint64_t id);

/* Has it late events up to this id, which stand behind newer ones? */
bool ring_has_late(const struct ring *ring, uint64_t id);

/* The sequence of the first entry that is the event `id`; 0: it is not here. Takes a look at every
 * entry. */
uint64_t ring_first_with(const struct ring *ring, uint64_t id);

/* The segment with the entry of this sequence, oldest <= sequence < next, and its index there. */
struct segment *ring_find(const struct ring *ring, uint64_t sequence, size_t *ret_index);
