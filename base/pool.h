/* base/pool.h - many small blocks that are freed together.
 *
 * A block has at most POOL_MAX bytes, and is aligned to 8. A freed block is reused for one of about
 * the same size; the memory is freed with the pool. So thousands of blocks are freed with a few
 * calls, whereas free(3) would process each of them, at once or with the next large block. */
#pragma once

#include <stddef.h>

enum { POOL_MAX = 256, POOL_CLASSES = 5 /* 16, 32, ... POOL_MAX bytes */ };

struct pool_page;

struct pool {
    struct pool_page *pages;
    size_t left; /* unused bytes of the first page */
    void *unused[POOL_CLASSES];
};

/* Initialize with {0}. */
void pool_done(struct pool *pool);
/* NULL: out of memory. */
void *pool_alloc(struct pool *pool, size_t size);
/* `size` as passed to pool_alloc(). */
void pool_free(struct pool *pool, void *block, size_t size); /* NULL is allowed */
