/* base/shared_memory.h - memory that a process shares with those that it forks from then on. */
#pragma once

#include <stddef.h>
#include <sys/mman.h>

/* `size` bytes of zeros; NULL: out of memory. Goes back to shared_memory_free(). */
static inline void *shared_memory_new(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

/* In this process; the others keep theirs. */
static inline void shared_memory_free(void *memory, size_t size)
{
    if (memory)
        munmap(memory, size);
}
