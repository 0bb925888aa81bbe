/* filters/word_hash.h - the keyed hash of tokens, names, hosts and ids; internal.
 *
 * Clients choose keywords and authors choose words, so neither must be able to prepare strings that
 * collide. Words are short and a post has about a hundred, so a hash may cost only a few
 * multiplications. SipHash takes about 60 operations for the shortest input. This is a universal
 * hash instead, whose bound on collisions is proven:
 *
 *   1. The size and the bytes, 7 at a time, are the coefficients of a polynomial over the field of
 *      2^61 - 1 elements, evaluated at a secret point (Carter, Wegman 1979). Two different strings
 *      of up to n chunks agree at n points at most: with probability n / 2^61 over the key.
 *   2. The value goes through a secret 128-bit multiply-add of which the upper half is taken
 *      (Dietzfelbinger 1996): for two different values the results are independent and uniform, so
 *      any k bits of two hashes agree with probability 2^-k, whatever the strings.
 *   3. A fixed bijection at the end keeps this property and breaks the arithmetic progressions that
 *      adjacent code points would otherwise leave in a table with linear probing.
 *
 * This holds for strings chosen without knowledge of the key. Hashes never leave the process and
 * collisions are not observable, so the key cannot be learned. */
#pragma once

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct sl_word_key {
    uint64_t point; /* below 2^61 - 1 */
    unsigned __int128 scale, shift;
    unsigned __int128 second; /* scale of the second hash of a pair */
};

/* Equal seeds give equal keys. */
struct sl_word_key sl_word_key_new(uint64_t seed);

static inline uint64_t sl_word_hash_close(unsigned __int128 sum)
{
    uint64_t hash = (uint64_t)(sum >> 64);

    hash ^= hash >> 32;
    hash *= 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
    return hash ? hash : 1;
}

/* a * b + c modulo 2^61 - 1, for a, b below it and c below 2^56. */
static inline uint64_t sl_word_hash_step(uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t prime = ((uint64_t)1 << 61) - 1;
    unsigned __int128 product = (unsigned __int128)a * b + c;
    uint64_t sum = ((uint64_t)product & prime) + (uint64_t)(product >> 61);

    return sum >= prime ? sum - prime : sum;
}

static inline uint32_t sl_word_hash_load32(const unsigned char *bytes)
{
    uint32_t word;

    memcpy(&word, bytes, sizeof(word));
    return le32toh(word);
}

/* `size` bytes, 1 to 7, as a little-endian number. Reads no bytes beyond them. */
static inline uint64_t sl_word_hash_load(const unsigned char *bytes, size_t size)
{
    if (size >= 4)
        return sl_word_hash_load32(bytes) | (uint64_t)sl_word_hash_load32(bytes + size - 4)
                                                << (8 * (size - 4));
    return bytes[0] | (uint64_t)bytes[size / 2] << (8 * (size / 2)) |
           (uint64_t)bytes[size - 1] << (8 * (size - 1));
}

/* Never 0. All 64 bits are equally good. */
static inline uint64_t sl_word_hash(const struct sl_word_key *key, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t value = size;

    for (; size > 7; size -= 7, bytes += 7)
        value = sl_word_hash_step(value, key->point, sl_word_hash_load(bytes, 7));
    if (size > 0)
        value = sl_word_hash_step(value, key->point, sl_word_hash_load(bytes, size));
    return sl_word_hash_close(key->scale * value + key->shift);
}

/* The hash of two hashes in order (adjacent tokens), or of a hash and a number for the kind of
 * object that was hashed. Never 0. */
static inline uint64_t sl_word_hash_pair(const struct sl_word_key *key, uint64_t first,
                                         uint64_t second)
{
    return sl_word_hash_close(key->scale * first + key->second * second + key->shift);
}
