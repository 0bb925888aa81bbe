/* gateway/counts/people.h - how many different users are there, of each of very many things?
 *
 * Exact up to PEOPLE_EXACT, by their hashes; beyond that a HyperLogLog as in distinct.h, but of 256
 * registers, whose standard error is 1.04 / sqrt(256) = 6.5 %. Of several of them the union can be
 * told: exactly if all are exact. A function of the sets alone. Takes up to 256 bytes, of a pool.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

enum {
    PEOPLE_EXACT = 64,
    PEOPLE_REGISTERS = 256,
    PEOPLE_SETS_MAX = 12 /* in a union */
};

#define PEOPLE_ERROR 0.065

struct people {
    union {
        uint32_t *hashes; /* NULL: nobody yet */
        uint8_t *registers;
    };
    uint8_t count, capacity; /* of the hashes */
    bool is_estimated;       /* there are registers */
};

/* Begins as {0}. */
void people_done(struct people *people, struct pool *pool);
/* `hash`: of the user, as distinct_hash(). 0; -ENOMEM: nothing has changed. */
int people_add(struct people *people, struct pool *pool, uint64_t hash);
uint64_t people_count(const struct people *people);
/* What they take of memory, a multiple of 4. */
size_t people_bytes(const struct people *people);
/* The same ones in `room` of that size, for as long as that is there. Nobody is added to them, and
 * they are not ended. */
void people_copy(const struct people *people, void *room, struct people *ret_copy);

enum { PEOPLE_UNION_SLOTS = 2048 }; /* twice as many as there can be hashes, and a power of two */

struct people_union {
    uint32_t slots[PEOPLE_UNION_SLOTS]; /* open addressing; 0: empty */
    uint8_t registers[PEOPLE_REGISTERS];
    size_t count;
    bool is_estimated;
};

void people_union_begin(struct people_union *all);
/* PEOPLE_SETS_MAX times at most. */
void people_union_add(struct people_union *all, const struct people *people);
/* Once, after all have been added. */
uint64_t people_union_count(struct people_union *all);
