/* gateway/counts/people.h - estimates numbers of different users, for very many sets.
 *
 * Exact up to PEOPLE_EXACT users, by their hashes; beyond that a HyperLogLog as in distinct.h, with
 * 256 registers and a standard error of 1.04 / sqrt(256) = 6.5 %. The size of a union can be
 * computed; it is exact if all sets are. The result is a function of the sets only. Uses up to 256
 * bytes of a pool. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

enum {
    PEOPLE_EXACT = 64,
    PEOPLE_REGISTERS = 256,
    PEOPLE_SETS_MAX = 12 /* sets in a union */
};

#define PEOPLE_ERROR 0.065

struct people {
    union {
        uint32_t *hashes; /* NULL: empty */
        uint8_t *registers;
    };
    uint8_t count, capacity; /* of the hashes */
    bool is_estimated;       /* `registers` is used */
};

/* Initialize with {0}. */
void people_done(struct people *people, struct pool *pool);
/* `hash`: distinct_hash() of the user's id. 0; -ENOMEM: nothing has changed. */
int people_add(struct people *people, struct pool *pool, uint64_t hash);
uint64_t people_count(const struct people *people);
/* The memory of the set in bytes, a multiple of 4. */
size_t people_bytes(const struct people *people);
/* Copies the set into `room`, which has that size. Users must not be added to the copy, and it must
 * not be freed with people_done(). */
void people_copy(const struct people *people, void *room, struct people *ret_copy);

enum { PEOPLE_UNION_SLOTS = 2048 }; /* a power of two; at most half of them are used */

struct people_union {
    uint32_t slots[PEOPLE_UNION_SLOTS]; /* open addressing; 0: empty */
    uint8_t registers[PEOPLE_REGISTERS];
    size_t count;
    bool is_estimated;
};

void people_union_begin(struct people_union *all);
/* To be called at most PEOPLE_SETS_MAX times. */
void people_union_add(struct people_union *all, const struct people *people);
/* To be called once, after adding all sets. */
uint64_t people_union_count(struct people_union *all);
