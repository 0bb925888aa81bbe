/* base/pool.h - many small blocks that all go at once.
 *
 * Blocks have POOL_MAX bytes at most, and are aligned to 8. One that is given back is used again
 * for one of about its size; the memory goes back with the pool. Thousands of blocks are so freed
 * in a few calls, where free(3) would look at each of them, now or with the next large block. */
#pragma once

#include <stddef.h>

enum { POOL_MAX = 256, POOL_CLASSES = 5 /* 16, 32, ... POOL_MAX bytes */ };

struct pool_page;

struct pool {
    struct pool_page *pages;
    size_t left; /* bytes of the first page */
    void *unused[POOL_CLASSES];
};

/* Begins as {0}. */
void pool_done(struct pool *pool);
/* NULL: out of memory. */
void *pool_alloc(struct pool *pool, size_t size);
/* `size` as it was asked for. */
void pool_free(struct pool *pool, void *block, size_t size); /* NULL is fine */
