/* segment.c - an array of events, and a hash table of verdicts by lane.
 *
 * In a segment of a log, entries are sorted by id, so an index is found by binary search; holes are
 * searched for only in segments that have some. A verdict has a bit for each event that a lane
 * wants; the next one is found in words of 64 bits. The table is at most half full. A segment holds
 * SEGMENT_EVENTS events; its bytes are counted for the limits of the ring and the cache of the
 * logs. */
#include "gateway/delivery/segment.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/stable_hash.h"

enum { FIRST_VERDICTS = 8 };

struct segment *segment_new(void)
{
    struct segment *segment = mem_zalloc(sizeof(*segment));

    if (segment)
        segment->bytes = sizeof(*segment);
    return segment;
}

void segment_free(struct segment *segment)
{
    if (!segment)
        return;
    for (size_t i = 0; i < segment->count; i++)
        event_unref(segment->entries[i].event);
    mem_free(segment->verdicts);
    mem_free(segment);
}

void segment_append(struct segment *segment, const struct segment_entry *entry)
{
    assert(segment->count < SEGMENT_EVENTS);
    if (segment->count > 0 && entry->previous > segment->entries[segment->count - 1].id)
        segment->has_holes = true;
    segment->entries[segment->count++] = *entry;
    if (!entry->event)
        return;
    segment->has_marks = segment->has_marks || entry->event->kind == EVENT_LATE;
    event_ref(entry->event);
    segment->bytes += entry->event->bytes;
}

size_t segment_find_above(const struct segment *segment, uint64_t id)
{
    size_t low = 0, high = segment->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (segment->entries[middle].id > id)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

size_t segment_find_hole(const struct segment *segment, size_t index, size_t end)
{
    const struct segment_entry *entries = segment->entries;

    assert(index <= end && end <= segment->count);
    if (!segment->has_holes)
        return end;
    for (size_t i = index + 1; i < end; i++) {
        if (entries[i].previous > entries[i - 1].id)
            return i;
    }
    return end;
}

/* The lane's slot, or the empty slot for it. */
static struct verdict *slot_of(struct verdict *verdicts, size_t capacity, uint64_t lane)
{
    size_t i = stable_hash(lane) & (capacity - 1);

    assert(lane > 0);
    while (verdicts[i].lane && verdicts[i].lane != lane)
        i = (i + 1) & (capacity - 1);
    return &verdicts[i];
}

struct verdict *segment_verdict(const struct segment *segment, uint64_t lane)
{
    struct verdict *slot;

    if (segment->verdict_capacity == 0)
        return NULL;
    slot = slot_of(segment->verdicts, segment->verdict_capacity, lane);
    return slot->lane ? slot : NULL;
}

static int grow(struct segment *segment)
{
    size_t capacity = segment->verdict_capacity ? segment->verdict_capacity * 2 : FIRST_VERDICTS;
    struct verdict *verdicts;

    if (2 * (segment->verdict_count + 1) <= segment->verdict_capacity)
        return 0;
    verdicts = mem_zalloc(mem_array_size(capacity, sizeof(*verdicts)));
    if (!verdicts)
        return -1;
    for (size_t i = 0; i < segment->verdict_capacity; i++) {
        if (segment->verdicts[i].lane)
            *slot_of(verdicts, capacity, segment->verdicts[i].lane) = segment->verdicts[i];
    }
    mem_free(segment->verdicts);
    segment->verdicts = verdicts;
    segment->verdict_capacity = capacity;
    return 0;
}

struct verdict *segment_add_verdict(struct segment *segment, uint64_t lane)
{
    struct verdict *verdict = segment_verdict(segment, lane);

    if (verdict)
        return verdict;
    if (grow(segment) < 0)
        return NULL;
    segment->verdict_count++;
    verdict = slot_of(segment->verdicts, segment->verdict_capacity, lane);
    verdict->lane = lane;
    return verdict;
}

size_t verdict_next(const struct verdict *verdict, size_t index)
{
    while (index < verdict->count) {
        uint64_t rest = verdict->wanted[index / 64] >> index % 64;

        if (rest) {
            index += (size_t)__builtin_ctzll(rest);
            break;
        }
        index = (index / 64 + 1) * 64;
    }
    return index < verdict->count ? index : verdict->count;
}

void segment_count_bytes(struct segment *segment)
{
    segment->bytes = sizeof(*segment) + segment->verdict_capacity * sizeof(*segment->verdicts);
    for (size_t i = 0; i < segment->count; i++) {
        if (segment->entries[i].event)
            segment->bytes += segment->entries[i].event->bytes;
    }
}
