/* base/stable_hash.h - a 64-bit hash that is the same in all processes and versions.
 *
 * The output function of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
 * generators", OOPSLA 2014). Samples and partitions depend on it, so it must never change. */
#pragma once

#include <stdint.h>

static inline uint64_t stable_hash(uint64_t id)
{
    uint64_t z = id + 0x9E3779B97F4A7C15u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
