/* ring.c - pages, the oldest dropped whole.
 *
 * A page is closed when it is full or holds a good part of what the ring may hold, so that what is
 * dropped at once is small beside what stays. Pages are counted anew when they are closed: by then
 * nearly all frames of their events have been built. */
#include "gateway/delivery/ring.h"

#include <assert.h>

#include "base/alloc.h"

enum { MAX_PAGE_BYTES = 256 << 10, PAGES_AT_LEAST = 16, FIRST_CAPACITY = 16 };

void ring_init(struct ring *ring, size_t max_bytes)
{
    size_t page_bytes = max_bytes / PAGES_AT_LEAST;

    *ring = (struct ring){
        .max_bytes = max_bytes,
        .page_bytes = page_bytes < MAX_PAGE_BYTES ? page_bytes : MAX_PAGE_BYTES,
        .oldest = 1,
        .next = 1,
        .shards = 1,
    };
}

static struct page *page_at(const struct ring *ring, size_t i)
{
    return ring->pages[(ring->first_page + i) & (ring->capacity - 1)];
}

static void lose(struct ring *ring, uint32_t shard, uint64_t id)
{
    if (id > ring->lost[shard])
        ring->lost[shard] = id;
}

/* Who has not been told of a gap that goes has to look at the log, which shows it. */
static void lose_event(struct ring *ring, const struct event *event, uint64_t sequence)
{
    uint64_t id = event->gap_to ? event->gap_to : event->id;

    if (id == 0)
        ring->lost_unlogged = sequence + 1;
    else
        lose(ring, event->shard, id);
}

static void drop_oldest(struct ring *ring)
{
    struct page *page = page_at(ring, 0);

    for (size_t i = 0; i < page->count; i++)
        lose_event(ring, page->entries[i].event, ring->oldest + i);
    ring->oldest += page->count;
    ring->bytes -= page->bytes;
    ring->first_page = (ring->first_page + 1) & (ring->capacity - 1);
    ring->page_count--;
    page_free(page);
}

void ring_done(struct ring *ring)
{
    while (ring->page_count > 0)
        drop_oldest(ring);
    mem_free(ring->pages);
    ring->pages = NULL;
}

static void hear_of(struct ring *ring, uint32_t shard)
{
    assert(shard < SL_SHARDS_MAX);
    if (shard >= ring->shards)
        ring->shards = shard + 1;
}

void ring_begin_shard(struct ring *ring, uint32_t shard, uint64_t id)
{
    hear_of(ring, shard);
    ring->lost[shard] = ring->head[shard] = id;
}

static int make_room(struct ring *ring)
{
    size_t capacity = ring->capacity ? ring->capacity * 2 : FIRST_CAPACITY;
    struct page **pages;

    if (ring->page_count < ring->capacity)
        return 0;
    pages = mem_alloc(mem_array_size(capacity, sizeof(struct page *)));
    if (!pages)
        return -1;
    for (size_t i = 0; i < ring->page_count; i++)
        pages[i] = page_at(ring, i);
    mem_free(ring->pages);
    ring->pages = pages;
    ring->capacity = capacity;
    ring->first_page = 0;
    return 0;
}

static void count_again(struct ring *ring, struct page *page)
{
    ring->bytes -= page->bytes;
    page_count_bytes(page);
    ring->bytes += page->bytes;
}

/* The page that takes the next event. NULL: out of memory. */
static struct page *open_page(struct ring *ring)
{
    struct page *page = ring->page_count ? page_at(ring, ring->page_count - 1) : NULL;

    if (page && page->count < PAGE_EVENTS && page->bytes < ring->page_bytes)
        return page;
    if (page)
        count_again(ring, page);
    if (make_room(ring) < 0)
        return NULL;
    page = page_new();
    if (!page)
        return NULL;
    ring->pages[(ring->first_page + ring->page_count++) & (ring->capacity - 1)] = page;
    ring->bytes += page->bytes;
    return page;
}

void ring_append(struct ring *ring, struct event *event)
{
    struct page_entry entry = {.event = event, .id = event->id, .previous = event->previous};
    struct page *page = open_page(ring);

    ring_pass(ring, event->shard, event->gap_to);
    event->sequence = ring->next++;
    if (page) {
        ring->bytes -= page->bytes;
        page_append(page, &entry);
        ring->bytes += page->bytes;
    }
    while (ring->page_count > 0 && (!page || ring->bytes > ring->max_bytes))
        drop_oldest(ring);
    if (!page) {
        lose_event(ring, event, event->sequence);
        ring->oldest = ring->next;
    }
}

void ring_lose(struct ring *ring, uint32_t shard, uint64_t id)
{
    ring_pass(ring, shard, id);
    lose(ring, shard, id);
}

void ring_pass(struct ring *ring, uint32_t shard, uint64_t id)
{
    hear_of(ring, shard);
    if (id > ring->head[shard])
        ring->head[shard] = id;
}

struct page *ring_find(const struct ring *ring, uint64_t sequence, size_t *ret_place)
{
    size_t low = 0, high = ring->page_count;
    uint64_t first;

    assert(sequence >= ring->oldest && sequence < ring->next);
    while (high - low > 1) {
        size_t middle = (low + high) / 2;

        if (page_at(ring, middle)->entries[0].event->sequence <= sequence)
            low = middle;
        else
            high = middle;
    }
    first = page_at(ring, low)->entries[0].event->sequence;
    *ret_place = (size_t)(sequence - first);
    return page_at(ring, low);
}
