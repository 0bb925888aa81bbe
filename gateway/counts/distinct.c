/* distinct.c - a few hashes, a table of more, or registers computed from them.
 *
 * Each of these is a function of the set, and so is the change from one to the next; therefore the
 * estimate is, too. */
#include "gateway/counts/distinct.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/stable_hash.h"

enum { FIRST_CAPACITY = 32, INDEX_BITS = 12, RANK_BITS = 64 - INDEX_BITS };

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

static int grow(struct distinct *distinct)
{
    size_t capacity = distinct->capacity ? distinct->capacity * 2 : FIRST_CAPACITY;
    uint64_t *hashes = mem_zalloc(mem_array_size(capacity, sizeof(*hashes)));

    if (!hashes)
        return -ENOMEM;
    fill(hashes, capacity, distinct->hashes, distinct->capacity);
    mem_free(distinct->hashes);
    distinct->hashes = hashes;
    distinct->capacity = capacity;
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

static int go_over(struct distinct *distinct)
{
    uint8_t *registers = mem_zalloc(DISTINCT_REGISTERS);

    if (!registers)
        return -ENOMEM;
    for (size_t i = 0; i < distinct->capacity; i++) {
        if (distinct->hashes[i])
            note(registers, distinct->hashes[i]);
    }
    mem_free(distinct->hashes);
    *distinct = (struct distinct){.registers = registers};
    return 0;
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
    uint64_t hash = distinct_hash(text), *slot;

    if (!distinct->registers) {
        if (distinct->count <= DISTINCT_FEW) {
            int r = add_to_few(distinct, hash);

            if (r != 0)
                return r < 0 ? r : 0;
        }
        if (distinct->capacity <= distinct->count * 2 && distinct->count < DISTINCT_EXACT &&
            grow(distinct) < 0)
            return -ENOMEM;
        slot = slot_of(distinct->hashes, distinct->capacity, hash);
        if (*slot)
            return 0;
        if (distinct->count < DISTINCT_EXACT) {
            *slot = hash;
            distinct->count++;
            return 0;
        }
        if (go_over(distinct) < 0)
            return -ENOMEM;
    }
    note(distinct->registers, hash);
    return 0;
}

uint64_t distinct_estimate(const struct distinct *distinct)
{
    return distinct->registers ? distinct_of_registers(distinct->registers, DISTINCT_REGISTERS)
                               : distinct->count;
}

void distinct_clear(struct distinct *distinct)
{
    mem_free(distinct->registers);
    distinct->registers = NULL;
    if (distinct->hashes && distinct->count > DISTINCT_FEW)
        memset(distinct->hashes, 0, distinct->capacity * sizeof(*distinct->hashes));
    distinct->count = 0;
}

void distinct_done(struct distinct *distinct)
{
    mem_free(distinct->registers);
    mem_free(distinct->hashes);
    *distinct = (struct distinct){0};
}
