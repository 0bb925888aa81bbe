#include "base/backoff.h"

#include "base/hash.h"

uint32_t backoff_spread_ms(uint32_t ms)
{
    uint32_t half = ms / 2;

    return ms - half + (uint32_t)(hash_key_random().k0 % ((uint64_t)half + 1));
}
