/* src/call/read.h - readers and pages, which all reads of posts have in common.
 *
 * A read returns the posts that the reader may see. A list is read newest first, in pages. Each row
 * has a position; the page that follows a row is the one with `before` set to that position. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Readers that are not users: an anonymous reader, who sees what is public, and the site itself,
 * which sees everything. */
#define SL_READER_NOBODY UINT64_C(0)
#define SL_READER_SYSTEM UINT64_MAX

enum { SL_PAGE_MAX = 1000 }; /* rows */

struct sl_page {
    uint64_t before; /* only rows with lower positions; 0: from the newest */
    size_t limit;    /* 1 .. SL_PAGE_MAX rows */
    bool is_bare;    /* rows may lack what never changes, because the caller has a cache
                        (src/cache/cached_rows.h) */
};
