/* page.c - an array of events, and a hash table of verdicts by lane.
 *
 * Entries are in the order of ids, so that a place is found by binary search; holes are looked for
 * only in pages that have some. A verdict is a bit for each event that a lane wants, and skips to
 * the next by words of 64. The table is at most half full. A page holds PAGE_EVENTS events; its
 * bytes are counted so that the ring and the log's pages can be bounded. */
#include "gateway/delivery/page.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/stable_hash.h"

enum { FIRST_VERDICTS = 8 };

struct page *page_new(void)
{
    struct page *page = mem_zalloc(sizeof(*page));

    if (page)
        page->bytes = sizeof(*page);
    return page;
}

void page_free(struct page *page)
{
    if (!page)
        return;
    for (size_t i = 0; i < page->count; i++)
        event_unref(page->entries[i].event);
    mem_free(page->verdicts);
    mem_free(page);
}

void page_append(struct page *page, const struct page_entry *entry)
{
    assert(page->count < PAGE_EVENTS);
    if (page->count > 0 && entry->previous > page->entries[page->count - 1].id)
        page->has_holes = true;
    page->entries[page->count++] = *entry;
    if (!entry->event)
        return;
    event_ref(entry->event);
    page->bytes += entry->event->bytes;
}

size_t page_find_above(const struct page *page, uint64_t id)
{
    size_t low = 0, high = page->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (page->entries[middle].id > id)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

size_t page_find_hole(const struct page *page, size_t place, size_t end)
{
    const struct page_entry *entries = page->entries;

    if (!page->has_holes)
        return end;
    for (size_t i = place + 1; i < end; i++) {
        if (entries[i].previous > entries[i - 1].id)
            return i;
    }
    return end;
}

/* The lane's slot, or the empty one where it would be. */
static struct verdict *slot_of(struct verdict *verdicts, size_t capacity, uint64_t lane)
{
    size_t i = stable_hash(lane) & (capacity - 1);

    while (verdicts[i].lane && verdicts[i].lane != lane)
        i = (i + 1) & (capacity - 1);
    return &verdicts[i];
}

struct verdict *page_verdict(const struct page *page, uint64_t lane)
{
    struct verdict *slot;

    if (page->verdict_capacity == 0)
        return NULL;
    slot = slot_of(page->verdicts, page->verdict_capacity, lane);
    return slot->lane ? slot : NULL;
}

static int grow(struct page *page)
{
    size_t capacity = page->verdict_capacity ? page->verdict_capacity * 2 : FIRST_VERDICTS;
    struct verdict *verdicts;

    if (2 * (page->verdict_count + 1) <= page->verdict_capacity)
        return 0;
    verdicts = mem_zalloc(mem_array_size(capacity, sizeof(*verdicts)));
    if (!verdicts)
        return -1;
    for (size_t i = 0; i < page->verdict_capacity; i++) {
        if (page->verdicts[i].lane)
            *slot_of(verdicts, capacity, page->verdicts[i].lane) = page->verdicts[i];
    }
    mem_free(page->verdicts);
    page->verdicts = verdicts;
    page->verdict_capacity = capacity;
    return 0;
}

struct verdict *page_add_verdict(struct page *page, uint64_t lane)
{
    struct verdict *verdict = page_verdict(page, lane);

    if (verdict)
        return verdict;
    if (grow(page) < 0)
        return NULL;
    page->verdict_count++;
    verdict = slot_of(page->verdicts, page->verdict_capacity, lane);
    verdict->lane = lane;
    return verdict;
}

size_t verdict_next(const struct verdict *verdict, size_t place)
{
    while (place < verdict->count) {
        uint64_t rest = verdict->wanted[place / 64] >> place % 64;

        if (rest) {
            place += (size_t)__builtin_ctzll(rest);
            break;
        }
        place = (place / 64 + 1) * 64;
    }
    return place < verdict->count ? place : verdict->count;
}

void page_count_bytes(struct page *page)
{
    page->bytes = sizeof(*page) + page->verdict_capacity * sizeof(*page->verdicts);
    for (size_t i = 0; i < page->count; i++) {
        if (page->entries[i].event)
            page->bytes += page->entries[i].event->bytes;
    }
}
