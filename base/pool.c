/* pool.c - pages are used up from the end; for each power of two there is a chain of blocks. */
#include "base/pool.h"

#include <assert.h>

#include "base/alloc.h"

enum { PAGE_BYTES = 32 << 10, LEAST = 16 };

static_assert(LEAST << (POOL_CLASSES - 1) == POOL_MAX, "a class for each size");

struct pool_page {
    struct pool_page *next;
    _Alignas(8) char bytes[PAGE_BYTES];
};

static unsigned class_of(size_t size)
{
    unsigned class = 0;

    assert(size <= POOL_MAX);
    while ((size_t)LEAST << class < size)
        class ++;
    return class;
}

static int add_page(struct pool *pool)
{
    struct pool_page *page = mem_alloc(sizeof(*page));

    if (!page)
        return -1;
    page->next = pool->pages;
    pool->pages = page;
    pool->left = PAGE_BYTES;
    return 0;
}

void *pool_alloc(struct pool *pool, size_t size)
{
    unsigned class = class_of(size);
    void *block = pool->unused[class];

    if (block) {
        pool->unused[class] = *(void **)block;
        return block;
    }
    if (pool->left < (size_t)LEAST << class && add_page(pool) < 0)
        return NULL;
    pool->left -= (size_t)LEAST << class;
    return pool->pages->bytes + pool->left;
}

void pool_free(struct pool *pool, void *block, size_t size)
{
    unsigned class = class_of(size);

    if (!block)
        return;
    *(void **)block = pool->unused[class];
    pool->unused[class] = block;
}

void pool_done(struct pool *pool)
{
    while (pool->pages) {
        struct pool_page *page = pool->pages;

        pool->pages = page->next;
        mem_free(page);
    }
    *pool = (struct pool){0};
}
