/* distinct.c - a few hashes, a table of more, or registers computed from them.
 *
 * The estimate is a function of the set, though the change from one to the next is not: of more
 * than DISTINCT_EXACT hashes it is computed from registers, whether these are kept or made for it.
 */
#include "gateway/counts/distinct.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/stable_hash.h"

enum {
    FIRST_CAPACITY = 32,
    MOST_CAPACITY = 2 * DISTINCT_EXACT,
    INDEX_BITS = 12,
    RANK_BITS = 64 - INDEX_BITS
};

static_assert(MOST_CAPACITY * sizeof(uint64_t) == DISTINCT_REGISTERS, "one becomes the other");

/* FNV-1a of 64 bits (Fowler, Noll, Vo) with an additional mixing step, because its high bits are
 * not random enough. Never 0. */
uint64_t distinct_hash(struct sl_slice text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < text.size; i++)
        hash = (hash ^ (unsigned char)text.data[i]) * UINT64_C(0x100000001b3);
    hash = stable_hash(hash);
    return hash ? hash : 1;
}

/* --- exact --- */

/* The slot of the hash, or the empty slot for it. */
static uint64_t *slot_of(uint64_t *hashes, size_t capacity, uint64_t hash)
{
    size_t i = hash & (capacity - 1);

    while (hashes[i] && hashes[i] != hash)
        i = (i + 1) & (capacity - 1);
    return &hashes[i];
}

static void fill(uint64_t *hashes, size_t capacity, const uint64_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (from[i])
            *slot_of(hashes, capacity, from[i]) = from[i];
    }
}

/* A thousand sketches that get the same strings must not all grow with the same one, in one turn of
 * the event loop. So a table may be filled to a half, or up to three quarters, depending on its
 * place in memory; neighbours grow together, which keeps their memory in order. The estimate does
 * not depend on it. */
static bool is_full(const struct distinct *distinct)
{
    size_t later = ((uintptr_t)distinct >> 15) % (distinct->capacity / 4u);

    return distinct->count >= distinct->capacity / 2 + later;
}

static int grow(struct distinct *distinct)
{
    size_t capacity = distinct->capacity ? distinct->capacity * 2u : FIRST_CAPACITY;
    uint64_t *hashes = mem_zalloc(mem_array_size(capacity, sizeof(*hashes)));

    if (!hashes)
        return -ENOMEM;
    fill(hashes, capacity, distinct->hashes, distinct->capacity);
    mem_free(distinct->hashes);
    distinct->hashes = hashes;
    distinct->capacity = (uint16_t)capacity;
    return 0;
}

/* 1: the hash is one of the few; 0: they have been moved to the table, which has room for one more;
 * -ENOMEM. */
static int add_to_few(struct distinct *distinct, uint64_t hash)
{
    for (size_t i = 0; i < distinct->count; i++) {
        if (distinct->few[i] == hash)
            return 1;
    }
    if (distinct->count < DISTINCT_FEW) {
        distinct->few[distinct->count++] = hash;
        return 1;
    }
    if (!distinct->hashes && grow(distinct) < 0)
        return -ENOMEM;
    fill(distinct->hashes, distinct->capacity, distinct->few, DISTINCT_FEW);
    return 0;
}

/* --- estimated --- */

/* The first bits select a register, which keeps the longest run of zeros in the remaining bits. */
static void note(uint8_t *registers, uint64_t hash)
{
    uint64_t index = hash >> RANK_BITS, rest = hash << INDEX_BITS;
    uint8_t rank = (uint8_t)(rest ? __builtin_clzll(rest) + 1 : RANK_BITS + 1);

    if (rank > registers[index])
        registers[index] = rank;
}

static void note_all(uint8_t *registers, const uint64_t *hashes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (hashes[i])
            note(registers, hashes[i]);
    }
}

/* The registers take the memory of the table. */
static void become_estimated(struct distinct *distinct)
{
    uint8_t registers[DISTINCT_REGISTERS] = {0};

    note_all(registers, distinct->hashes, distinct->capacity);
    memcpy(distinct->registers, registers, sizeof(registers));
    distinct->is_estimated = true;
}

static double sigma(double x)
{
    double y = 1, z = x, before;

    if (x == 1)
        return INFINITY;
    do {
        x *= x;
        before = z;
        z += x * y;
        y += y;
    } while (z != before);
    return z;
}

static double tau(double x)
{
    double y = 1, z = 1 - x, before;

    if (x == 0 || x == 1)
        return 0;
    do {
        x = sqrt(x);
        before = z;
        y *= 0.5;
        z -= (1 - x) * (1 - x) * y;
    } while (z != before);
    return z / 3;
}

uint64_t distinct_of_registers(const uint8_t *registers, size_t count)
{
    const double m = (double)count, alpha = 0.721347520444481703680; /* 1 / (2 ln 2) */
    unsigned counts[RANK_BITS + 2] = {0};
    double z;

    for (size_t i = 0; i < count; i++)
        counts[registers[i]]++;
    z = m * tau(1 - counts[RANK_BITS + 1] / m);
    for (int rank = RANK_BITS; rank >= 1; rank--)
        z = 0.5 * (z + counts[rank]);
    z += m * sigma(counts[0] / m);
    return (uint64_t)(alpha * m * m / z + 0.5);
}

/* --- exact or estimated --- */

int distinct_add(struct distinct *distinct, struct sl_slice text)
{
    uint64_t hash = distinct_hash(text);

    if (distinct->is_estimated) {
        note(distinct->registers, hash);
        return 0;
    }
    if (distinct->count <= DISTINCT_FEW) {
        int r = add_to_few(distinct, hash);

        if (r != 0)
            return r < 0 ? r : 0;
    }
    if (*slot_of(distinct->hashes, distinct->capacity, hash))
        return 0;
    if (is_full(distinct) && distinct->capacity == MOST_CAPACITY) {
        become_estimated(distinct);
        note(distinct->registers, hash);
        return 0;
    }
    if (is_full(distinct) && grow(distinct) < 0)
        return -ENOMEM;
    *slot_of(distinct->hashes, distinct->capacity, hash) = hash;
    distinct->count++;
    return 0;
}

static uint64_t estimate_of_hashes(const uint64_t *hashes, size_t count)
{
    uint8_t registers[DISTINCT_REGISTERS] = {0};

    note_all(registers, hashes, count);
    return distinct_of_registers(registers, DISTINCT_REGISTERS);
}

uint64_t distinct_estimate(const struct distinct *distinct)
{
    if (distinct->is_estimated)
        return distinct_of_registers(distinct->registers, DISTINCT_REGISTERS);
    if (distinct->count > DISTINCT_EXACT)
        return estimate_of_hashes(distinct->hashes, distinct->capacity);
    return distinct->count;
}

void distinct_clear(struct distinct *distinct)
{
    if (distinct->is_estimated || distinct->count > DISTINCT_FEW)
        memset(distinct->hashes, 0, distinct->capacity * sizeof(*distinct->hashes));
    distinct->count = 0;
    distinct->is_estimated = false;
}

void distinct_done(struct distinct *distinct)
{
    mem_free(distinct->hashes);
    *distinct = (struct distinct){0};
}
