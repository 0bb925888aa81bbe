#include "base/hash.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

struct hash_key hash_key_random(void)
{
    struct hash_key key;
    struct timespec now;

    if (getrandom(&key, sizeof(key), 0) == (ssize_t)sizeof(key))
        return key;
    clock_gettime(CLOCK_REALTIME, &now);
    key.k0 = (uint64_t)now.tv_nsec * 0x9E3779B97F4A7C15u;
    key.k1 = (uint64_t)(uintptr_t)&key ^ (uint64_t)now.tv_sec;
    return key;
}

static inline uint64_t rotl(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotl(v[1], 13) ^ v[0];
    v[0] = rotl(v[0], 32);
    v[2] += v[3];
    v[3] = rotl(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotl(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotl(v[1], 17) ^ v[2];
    v[2] = rotl(v[2], 32);
}

/* Little-endian hosts read words directly; on others the result is another, equally good
 * function. */
uint64_t hash_bytes(struct hash_key key, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t v[4] = {key.k0 ^ 0x736f6d6570736575u, key.k1 ^ 0x646f72616e646f6du,
                     key.k0 ^ 0x6c7967656e657261u, key.k1 ^ 0x7465646279746573u};
    uint64_t last = (uint64_t)size << 56;
    uint64_t word;
    size_t i;

    for (i = 0; i + 8 <= size; i += 8) {
        memcpy(&word, bytes + i, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    for (int shift = 0; i < size; i++, shift += 8)
        last |= (uint64_t)bytes[i] << shift;

    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    sip_round(v);
    sip_round(v);
    sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
