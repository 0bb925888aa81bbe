/* people.c - a few hashes in no order, or registers in the same memory.
 *
 * Both use the same memory at most. 32 bits of each hash are kept: in one of two million full sets,
 * two users have the same. */
#include "gateway/counts/people.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "gateway/counts/distinct.h"

enum { FIRST_CAPACITY = 4, INDEX_BITS = 8 };

static_assert(PEOPLE_EXACT * sizeof(uint32_t) == PEOPLE_REGISTERS, "one becomes the other");
static_assert(1 << INDEX_BITS == PEOPLE_REGISTERS, "the first bits name a register");

static void note(uint8_t *registers, uint32_t hash)
{
    uint32_t index = hash >> (32 - INDEX_BITS), rest = hash << INDEX_BITS;
    uint8_t rank = (uint8_t)(rest ? __builtin_clz(rest) + 1 : 32 - INDEX_BITS + 1);

    if (rank > registers[index])
        registers[index] = rank;
}

static void let_go(struct people *people, struct pool *pool)
{
    pool_free(pool, people->hashes, people->capacity * sizeof(*people->hashes));
}

static int grow(struct people *people, struct pool *pool)
{
    unsigned capacity = people->capacity ? people->capacity * 2u : FIRST_CAPACITY;
    uint32_t *hashes = pool_alloc(pool, capacity * sizeof(*hashes));

    if (!hashes)
        return -ENOMEM;
    if (people->count > 0)
        memcpy(hashes, people->hashes, people->count * sizeof(*hashes));
    let_go(people, pool);
    people->hashes = hashes;
    people->capacity = (uint8_t)capacity;
    return 0;
}

static void become_estimated(struct people *people)
{
    uint8_t registers[PEOPLE_REGISTERS] = {0};

    for (unsigned i = 0; i < people->count; i++)
        note(registers, people->hashes[i]);
    memcpy(people->registers, registers, sizeof(registers));
    people->is_estimated = true;
}

int people_add(struct people *people, struct pool *pool, uint64_t hash)
{
    uint32_t part = (uint32_t)(hash >> 32);

    if (!people->is_estimated) {
        for (unsigned i = 0; i < people->count; i++) {
            if (people->hashes[i] == part)
                return 0;
        }
        if (people->count < PEOPLE_EXACT) {
            if (people->count == people->capacity && grow(people, pool) < 0)
                return -ENOMEM;
            people->hashes[people->count++] = part;
            return 0;
        }
        become_estimated(people);
    }
    note(people->registers, part);
    return 0;
}

void people_done(struct people *people, struct pool *pool)
{
    let_go(people, pool);
    *people = (struct people){0};
}

uint64_t people_count(const struct people *people)
{
    return people->is_estimated ? distinct_of_registers(people->registers, PEOPLE_REGISTERS)
                                : people->count;
}

size_t people_bytes(const struct people *people)
{
    return people->is_estimated ? PEOPLE_REGISTERS : people->count * sizeof(*people->hashes);
}

void people_copy(const struct people *people, void *room, struct people *ret_copy)
{
    *ret_copy = *people;
    ret_copy->hashes = room;
    if (people_bytes(people) > 0)
        memcpy(room, people->hashes, people_bytes(people));
}

/* --- unions --- */

void people_union_begin(struct people_union *all)
{
    memset(all->slots, 0, sizeof(all->slots));
    all->count = 0;
    all->is_estimated = false;
}

static void add_hash(struct people_union *all, uint32_t hash)
{
    uint32_t i = hash & (PEOPLE_UNION_SLOTS - 1);

    hash = hash ? hash : 1;
    while (all->slots[i] && all->slots[i] != hash)
        i = (i + 1) & (PEOPLE_UNION_SLOTS - 1);
    all->count += all->slots[i] == 0;
    all->slots[i] = hash;
}

static void add_registers(struct people_union *all, const uint8_t *registers)
{
    if (!all->is_estimated)
        memset(all->registers, 0, sizeof(all->registers));
    all->is_estimated = true;
    for (size_t i = 0; i < PEOPLE_REGISTERS; i++)
        all->registers[i] = registers[i] > all->registers[i] ? registers[i] : all->registers[i];
}

void people_union_add(struct people_union *all, const struct people *people)
{
    if (people->is_estimated) {
        add_registers(all, people->registers);
        return;
    }
    assert(all->count + people->count <= PEOPLE_UNION_SLOTS / 2);
    for (unsigned i = 0; i < people->count; i++)
        add_hash(all, people->hashes[i]);
}

uint64_t people_union_count(struct people_union *all)
{
    if (!all->is_estimated)
        return all->count;
    for (size_t i = 0; all->count > 0 && i < PEOPLE_UNION_SLOTS; i++) {
        if (all->slots[i])
            note(all->registers, all->slots[i]);
    }
    return distinct_of_registers(all->registers, PEOPLE_REGISTERS);
}
