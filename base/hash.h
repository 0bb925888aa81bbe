/* base/hash.h - a keyed hash, for tables whose keys come from untrusted sources.
 *
 * SipHash-1-3 (Aumasson, Bernstein: "SipHash: a fast short-input PRF", 2012, with one compression
 * and three finalization rounds as used by Rust and Python). With a secret key nobody can prepare
 * keys that collide. Not stable across processes; for a stable hash see stable_hash.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct hash_key {
    uint64_t k0, k1;
};

/* A random key from the kernel; from time and addresses if that is not available. */
struct hash_key hash_key_random(void);

uint64_t hash_bytes(struct hash_key key, const void *data, size_t size);

static inline uint64_t hash_slice(struct hash_key key, struct sl_slice slice)
{
    return hash_bytes(key, slice.data, slice.size);
}
