/* base/shared_memory.h - memory shared with the processes forked after its creation. */
#pragma once

#include <stddef.h>
#include <sys/mman.h>

/* `size` zero bytes; NULL: out of memory. Free with shared_memory_free(). */
static inline void *shared_memory_new(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

/* Unmaps the memory in this process; others keep it. */
static inline void shared_memory_free(void *memory, size_t size)
{
    if (memory)
        munmap(memory, size);
}
