/* gateway/delivery/ring.h - recent events in the order in which they passed, which is that of ids
 * except for late events and gaps.
 *
 * It contains everything that live clients may be sent: logged events, events published without the
 * log, and gaps. Each gets a sequence number, and stays until newer ones need the memory. A reader
 * of the ring remembers its sequence; a client with ids (a cursor for each shard) may begin with
 * the oldest entry if the ring has lost nothing after those ids. */
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
    uint64_t oldest, next;          /* sequences of the oldest entry and of the next one */
    uint64_t lost_unlogged;         /* entries without id below this sequence may be lost */
    uint64_t unlogged_to;           /* sequence behind the last unlogged event; 0: none */
    uint32_t shards;                /* known shards: all below this number */
    uint64_t lost[SL_SHARDS_MAX];   /* by shard: everything after this id is here */
    uint64_t head[SL_SHARDS_MAX];   /* by shard: the newest id that has passed or is in a gap */
    uint64_t passed[SL_SHARDS_MAX]; /* by shard: the last id that has passed; after a rewind it is
                                       below `head` until the ids have caught up */
    uint64_t lost_of_all; /* events of no shard up to this id are here, except late ones. `lost` is
                             higher if a gap has left the ring, because it is at its beginning, or
                             if something could not be kept */
    uint64_t newest;      /* the highest id that has passed, in any shard, or is in a gap; a rewind
                             lowers it */
    struct ring_rewind {
        uint64_t sequence;    /* 0: none */
        uint64_t from, to;    /* ids: exclusive, inclusive */
        uint64_t before;      /* sequence of the previous one; 0: none */
    } rewinds[SL_SHARDS_MAX]; /* by shard: the last gap that reported a rewind */
    uint64_t last_rewind;     /* sequence of the last of them; 0: none */
    struct ring_missed {
        uint64_t id;       /* end of what could not be kept */
        uint64_t sequence; /* of the next entry after it; 0: everything was kept */
    } missed[SL_SHARDS_MAX];
    struct ring_late {
        uint64_t sequence;   /* of the last late event that has left the ring; 0: none */
        uint64_t unforeseen; /* of the last unforeseen one; 0: none */
        uint64_t low;        /* the event before the first of those that left it consecutively */
        bool goes_on;        /* no other event of the shard has left it since */
        size_t kept;         /* late events in the ring */
    } late[SL_SHARDS_MAX];
    uint64_t late_shards; /* shards (bits) with such events */
};

void ring_init(struct ring *ring, size_t max_bytes);
void ring_done(struct ring *ring);

/* Events of the shard after `id` (0: from the first on) will pass; to be called before any of
 * them. */
void ring_begin_shard(struct ring *ring, uint32_t shard, uint64_t id);

/* Gives the event or gap its sequence and keeps it. Out of memory: it is not kept. */
void ring_append(struct ring *ring, struct event *event);
/* Drops everything. */
void ring_clear(struct ring *ring);
/* Everything up to `id` could not be kept, not even as a gap. */
void ring_lose(struct ring *ring, uint32_t shard, uint64_t id);
/* The event `id` has passed, whether it was kept or not. */
void ring_pass(struct ring *ring, uint32_t shard, uint64_t id);

/* Whether it has late events up to this id, which come after newer ones. */
bool ring_has_late(const struct ring *ring, uint64_t id);

/* The sequence of the first entry with the event `id`; 0: not here. Searches all entries. */
uint64_t ring_first_with(const struct ring *ring, uint64_t id);

/* The segment with the entry of this sequence (oldest <= sequence < next), and its index there. */
struct segment *ring_find(const struct ring *ring, uint64_t sequence, size_t *ret_index);
