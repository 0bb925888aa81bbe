/* gateway/delivery/page.h - a stretch of events in order, and which lanes want which of them.
 *
 * What clients that catch up read: the ring (ring.h) is a list of pages, and so is what has been
 * read of a log (log_pages.h). However many clients read a page, its events are judged once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/intake/event.h"

enum { PAGE_EVENTS = 128 };

struct page_entry {
    struct event *event; /* NULL: of no kind that clients get, or refused */
    uint64_t id;         /* 0: published without the log */
    uint64_t previous;   /* the event before it in its shard's log; 0: none */
};

/* One lane's wishes. */
struct verdict {
    uint64_t lane;  /* its number; 0: an empty slot */
    uint32_t count; /* entries that have been judged, from the first on */
    uint64_t wanted[PAGE_EVENTS / 64];
};

struct page {
    size_t count;
    size_t bytes;             /* memory of it all, as of the last page_count_bytes() */
    struct verdict *verdicts; /* open addressing, at most half full */
    size_t verdict_count, verdict_capacity;
    bool has_holes; /* of one shard's log: some entry does not follow upon the one before it */
    struct page_entry entries[PAGE_EVENTS];
};

/* NULL: out of memory. */
struct page *page_new(void);
void page_free(struct page *page);

/* There is room. Takes a reference to the event. */
void page_append(struct page *page, const struct page_entry *entry);

/* The first entry with an id above `id`, of a page that is in the order of ids; page->count: none.
 */
size_t page_find_above(const struct page *page, uint64_t id);

/* The first entry behind `place` and before `end` that does not follow upon the one before it: what
 * was between them has been taken out of the log. `end`: none. */
size_t page_find_hole(const struct page *page, size_t place, size_t end);

/* NULL: the lane has none. Valid until one is added. */
struct verdict *page_verdict(const struct page *page, uint64_t lane);
/* Adds one, empty, unless there is one. NULL: out of memory. */
struct verdict *page_add_verdict(struct page *page, uint64_t lane);

static inline void verdict_want(struct verdict *verdict, size_t i)
{
    verdict->wanted[i / 64] |= UINT64_C(1) << i % 64;
}

static inline bool verdict_wants(const struct verdict *verdict, size_t i)
{
    return verdict->wanted[i / 64] >> i % 64 & 1;
}

/* The first wanted place at or behind this one; verdict->count: none of those that were judged. */
size_t verdict_next(const struct verdict *verdict, size_t place);

/* Events grow with their frames, and a page with its verdicts. */
void page_count_bytes(struct page *page);
