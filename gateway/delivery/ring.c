/* ring.c - a list of segments, of which the oldest is dropped as a whole.
 *
 * A segment is closed when it is full or has a certain part of the ring's bytes, so that a dropped
 * segment is small in comparison with the rest. The bytes of a segment are counted again when it is
 * closed, because nearly all frames of its events have been built by then. */
#include "gateway/delivery/ring.h"

#include <assert.h>

#include "base/alloc.h"

enum { MAX_SEGMENT_BYTES = 256 << 10, SEGMENTS_AT_LEAST = 16, FIRST_CAPACITY = 16 };

void ring_init(struct ring *ring, size_t max_bytes)
{
    size_t segment_bytes = max_bytes / SEGMENTS_AT_LEAST;

    *ring = (struct ring){
        .max_bytes = max_bytes,
        .segment_bytes = segment_bytes < MAX_SEGMENT_BYTES ? segment_bytes : MAX_SEGMENT_BYTES,
        .oldest = 1,
        .next = 1,
        .shards = 1,
    };
}

static struct segment *segment_at(const struct ring *ring, size_t i)
{
    return ring->segments[(ring->first_segment + i) & (ring->capacity - 1)];
}

static void lose(struct ring *ring, uint32_t shard, uint64_t id)
{
    if (id > ring->lost[shard])
        ring->lost[shard] = id;
}

/* A client that has not reached the late event, or gap, has nothing of its shard after `low`. */
static void note_late(struct ring *ring, const struct event *event, uint64_t sequence)
{
    struct ring_late *late = &ring->late[event->shard];

    if (event->id == 0 && !event->is_late)
        return;
    if (event->is_late && !late->goes_on)
        late->low = event->gap_to ? event->gap_from : event->previous;
    if (event->is_late) {
        late->sequence = sequence;
        if (event->is_unforeseen)
            late->unforeseen = sequence;
        if (--late->kept == 0)
            ring->late_shards &= ~(UINT64_C(1) << event->shard);
    }
    late->goes_on = event->is_late;
}

/* What was lost before the rewound gap no longer counts; what could not be kept after it does. */
static void forget_lost(struct ring *ring, const struct event *gap, uint64_t sequence)
{
    const struct ring_missed *missed = &ring->missed[gap->shard];

    ring->lost[gap->shard] = gap->gap_from;
    if (missed->sequence > sequence)
        lose(ring, gap->shard, missed->id);
}

/* A client that was not told of a gap that is dropped must read the log, which shows it. */
static void lose_event(struct ring *ring, const struct event *event, uint64_t sequence)
{
    uint64_t id = event->gap_to ? event->gap_to : event->id;

    if (event->id > ring->lost_of_all)
        ring->lost_of_all = event->id;
    note_late(ring, event, sequence);
    if (id == 0)
        ring->lost_unlogged = sequence + 1;
    else if (event->is_rewound)
        forget_lost(ring, event, sequence);
    else
        lose(ring, event->shard, id);
}

static void drop_oldest(struct ring *ring)
{
    struct segment *segment = segment_at(ring, 0);

    for (size_t i = 0; i < segment->count; i++)
        lose_event(ring, segment->entries[i].event, ring->oldest + i);
    ring->oldest += segment->count;
    assert(ring->bytes >= segment->bytes);
    ring->bytes -= segment->bytes;
    ring->first_segment = (ring->first_segment + 1) & (ring->capacity - 1);
    ring->segment_count--;
    segment_free(segment);
}

void ring_clear(struct ring *ring)
{
    while (ring->segment_count > 0)
        drop_oldest(ring);
}

void ring_done(struct ring *ring)
{
    ring_clear(ring);
    mem_free(ring->segments);
    ring->segments = NULL;
}

static void hear_of(struct ring *ring, uint32_t shard)
{
    assert(shard < SL_SHARDS_MAX);
    if (shard >= ring->shards)
        ring->shards = shard + 1;
}

void ring_begin_shard(struct ring *ring, uint32_t shard, uint64_t id)
{
    ring_pass(ring, shard, id);
    ring->lost[shard] = ring->head[shard] = ring->passed[shard] = id;
    if (id > ring->lost_of_all)
        ring->lost_of_all = id;
}

/* The following events of the shard are after `id`. Other shards need not have reached it. */
static void reach(struct ring *ring, uint32_t shard, uint64_t id)
{
    hear_of(ring, shard);
    if (id > ring->head[shard])
        ring->head[shard] = id;
    if (id > ring->passed[shard])
        ring->passed[shard] = id;
    if (id > ring->newest && ring->shards == 1)
        ring->newest = id;
}

static int make_room(struct ring *ring)
{
    size_t capacity = ring->capacity ? ring->capacity * 2 : FIRST_CAPACITY;
    struct segment **segments;

    if (ring->segment_count < ring->capacity)
        return 0;
    segments = mem_alloc(mem_array_size(capacity, sizeof(struct segment *)));
    if (!segments)
        return -1;
    for (size_t i = 0; i < ring->segment_count; i++)
        segments[i] = segment_at(ring, i);
    mem_free(ring->segments);
    ring->segments = segments;
    ring->capacity = capacity;
    ring->first_segment = 0;
    return 0;
}

static void count_again(struct ring *ring, struct segment *segment)
{
    ring->bytes -= segment->bytes;
    segment_count_bytes(segment);
    ring->bytes += segment->bytes;
}

/* The segment for the next event. NULL: out of memory. */
static struct segment *open_segment(struct ring *ring)
{
    struct segment *segment =
        ring->segment_count ? segment_at(ring, ring->segment_count - 1) : NULL;

    if (segment && segment->count < SEGMENT_EVENTS && segment->bytes < ring->segment_bytes)
        return segment;
    if (segment)
        count_again(ring, segment);
    if (make_room(ring) < 0)
        return NULL;
    segment = segment_new();
    if (!segment)
        return NULL;
    ring->segments[(ring->first_segment + ring->segment_count++) & (ring->capacity - 1)] = segment;
    ring->bytes += segment->bytes;
    return segment;
}

/* The shard continues from before the gap. */
static void note_rewind(struct ring *ring, const struct event *gap)
{
    ring->rewinds[gap->shard] = (struct ring_rewind){gap->sequence, gap->gap_from, gap->gap_to,
                                                     ring->rewinds[gap->shard].sequence};
    ring->last_rewind = gap->sequence;
    ring->passed[gap->shard] = gap->gap_from;
    if (ring->shards == 1)
        ring->newest = gap->gap_from;
}

void ring_append(struct ring *ring, struct event *event)
{
    struct segment_entry entry = {.event = event, .id = event->id, .previous = event->previous};
    struct segment *segment = open_segment(ring);

    reach(ring, event->shard, event->gap_to);
    event->sequence = ring->next++;
    if (event->is_rewound)
        note_rewind(ring, event);
    if (event_is_unlogged(event))
        ring->unlogged_to = ring->next;
    if (segment) {
        ring->bytes -= segment->bytes;
        segment_append(segment, &entry);
        ring->bytes += segment->bytes;
    }
    if (event->is_late) {
        ring->late[event->shard].kept++;
        ring->late_shards |= UINT64_C(1) << event->shard;
    }
    while (ring->segment_count > 0 && (!segment || ring->bytes > ring->max_bytes))
        drop_oldest(ring);
    if (!segment) {
        lose_event(ring, event, event->sequence);
        ring->oldest = ring->next;
    }
}

void ring_lose(struct ring *ring, uint32_t shard, uint64_t id)
{
    reach(ring, shard, id);
    lose(ring, shard, id);
    ring->missed[shard] = (struct ring_missed){id, ring->next};
}

void ring_pass(struct ring *ring, uint32_t shard, uint64_t id)
{
    reach(ring, shard, id);
    if (id > ring->newest)
        ring->newest = id;
}

bool ring_has_late(const struct ring *ring, uint64_t id)
{
    for (uint64_t rest = ring->late_shards; rest; rest &= rest - 1) {
        if (ring->lost[__builtin_ctzll(rest)] < id)
            return true;
    }
    return false;
}

uint64_t ring_first_with(const struct ring *ring, uint64_t id)
{
    uint64_t sequence = ring->oldest;

    for (size_t i = 0; i < ring->segment_count; i++) {
        const struct segment *segment = segment_at(ring, i);

        for (size_t k = 0; k < segment->count; k++, sequence++) {
            if (segment->entries[k].id == id)
                return sequence;
        }
    }
    return 0;
}

struct segment *ring_find(const struct ring *ring, uint64_t sequence, size_t *ret_index)
{
    size_t low = 0, high = ring->segment_count;
    uint64_t first;

    assert(sequence >= ring->oldest && sequence < ring->next);
    while (high - low > 1) {
        size_t middle = (low + high) / 2;

        if (segment_at(ring, middle)->entries[0].event->sequence <= sequence)
            low = middle;
        else
            high = middle;
    }
    first = segment_at(ring, low)->entries[0].event->sequence;
    *ret_index = (size_t)(sequence - first);
    return segment_at(ring, low);
}
