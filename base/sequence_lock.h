/* base/sequence_lock.h - a sequence lock: one process writes a value, others read it, and nobody
 * waits.
 *
 * The writer increments a sequence number before and after writing, so that readers can tell
 * whether their copy is consistent: call sequence_lock_read(), copy the value, call
 * sequence_lock_was_still(), and repeat if that returns false. If the writer dies while writing,
 * the value cannot be read until it is written again, so readers must limit their attempts. A
 * zeroed lock is valid. */
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

/* Whether `sequence`, which sequence_lock_read() returned, was not during a write, and nobody has
 * written since. */
static inline bool sequence_lock_was_still(const struct sequence_lock *lock, uint32_t sequence)
{
    atomic_thread_fence(memory_order_acquire);
    return sequence % 2 == 0 &&
           sequence == atomic_load_explicit(&lock->sequence, memory_order_relaxed);
}
