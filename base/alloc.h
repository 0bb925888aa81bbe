/* base/alloc.h - the allocator of our own code, which tests can make fail.
 *
 * The contracts are those of malloc(3) and its family. Free the memory with mem_free(). */
#pragma once

#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t size) __attribute__((malloc, alloc_size(1)));
void *mem_zalloc(size_t size) __attribute__((malloc, alloc_size(1)));
void *mem_realloc(void *memory, size_t size) __attribute__((alloc_size(2)));
void *mem_copy(const void *data, size_t size) __attribute__((malloc, alloc_size(2)));
char *mem_strndup(const char *text, size_t size); /* copies `size` bytes and adds a NUL */
void mem_free(void *memory);

/* count * size, or SIZE_MAX on overflow, which then fails to allocate. */
static inline size_t mem_array_size(size_t count, size_t size)
{
    size_t bytes;

    return __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes;
}

/* For tests: the next `n` allocations succeed and all later ones fail, until mem_fail_never().
 * Process-wide; not thread-safe. mem_failed(): whether one has failed. */
void mem_fail_after(uint64_t n);
void mem_fail_never(void);
int mem_failed(void);
