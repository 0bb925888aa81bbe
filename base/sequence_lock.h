/* base/sequence_lock.h - a value that one process writes and others read, none waiting.
 *
 * The writer counts a sequence up before and after it writes, so that who reads sees whether the
 * copy is whole: sequence_lock_read(), the copy, sequence_lock_was_still(), and once more where it
 * was not. A writer that dies while it writes leaves a value that nobody can read until it is
 * written anew, so readers bound their tries. Zeros are a lock. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sequence_lock {
    _Atomic uint32_t sequence; /* odd while the value is being written */
};

static inline void sequence_lock_begin_write(struct sequence_lock *lock)
{
    uint32_t sequence = atomic_load_explicit(&lock->sequence, memory_order_relaxed);

    atomic_store_explicit(&lock->sequence, sequence | 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

static inline void sequence_lock_end_write(struct sequence_lock *lock)
{
    uint32_t sequence = atomic_load_explicit(&lock->sequence, memory_order_relaxed);

    atomic_store_explicit(&lock->sequence, sequence + 1, memory_order_release);
}

static inline uint32_t sequence_lock_read(const struct sequence_lock *lock)
{
    return atomic_load_explicit(&lock->sequence, memory_order_acquire);
}

/* Nobody has written since sequence_lock_read() returned `sequence`, nor did then. */
static inline bool sequence_lock_was_still(const struct sequence_lock *lock, uint32_t sequence)
{
    atomic_thread_fence(memory_order_acquire);
    return sequence % 2 == 0 &&
           sequence == atomic_load_explicit(&lock->sequence, memory_order_relaxed);
}
