/* src/call/read.h - what all reads of posts have in common: who reads, and pages.
 *
 * A reader gets the posts that this user may see. A list is read newest first and in pages: each
 * row has a position, and the page behind a row is the one `before` the row's position. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who reads, besides a user by id: somebody unknown, who sees what is public; or the site itself,
 * which sees everything. */
#define SL_READER_NOBODY UINT64_C(0)
#define SL_READER_SYSTEM UINT64_MAX

enum { SL_PAGE_MAX = 1000 }; /* rows */

struct sl_page {
    uint64_t before; /* rows with smaller positions only; 0: from the newest on */
    size_t limit;    /* 1 .. SL_PAGE_MAX rows */
    bool is_bare; /* rows may lack what never changes: there is a cache (src/cache/cached_rows.h) */
};
