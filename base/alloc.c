/* alloc.c - malloc with a switch that makes it fail.
 *
 * The switch is process-wide state, so that a test can reach every allocation of a call without
 * passing an allocator through all functions. Besides log.c this is the only such state. */
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

static uint64_t allocations_left = UINT64_MAX;
static int failed;

static int refused(void)
{
    if (__builtin_expect(allocations_left == UINT64_MAX, 1))
        return 0;
    if (allocations_left > 0) {
        allocations_left--;
        return 0;
    }
    failed = 1;
    return 1;
}

void *mem_alloc(size_t size)
{
    if (refused())
        return NULL;
    return malloc(size ? size : 1);
}

void *mem_zalloc(size_t size)
{
    if (refused())
        return NULL;
    return calloc(1, size ? size : 1);
}

void *mem_realloc(void *memory, size_t size)
{
    if (refused())
        return NULL;
    return realloc(memory, size ? size : 1);
}

void *mem_copy(const void *data, size_t size)
{
    void *copy = mem_alloc(size);

    if (copy && size > 0)
        memcpy(copy, data, size);
    return copy;
}

char *mem_strndup(const char *text, size_t size)
{
    char *copy = mem_alloc(size + 1);

    if (!copy)
        return NULL;
    if (size > 0)
        memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

void mem_free(void *memory)
{
    free(memory);
}

void mem_fail_after(uint64_t n)
{
    allocations_left = n;
    failed = 0;
}

void mem_fail_never(void)
{
    allocations_left = UINT64_MAX;
}

int mem_failed(void)
{
    return failed;
}
