/* gateway/counts/distinct.h - estimates the number of different strings.
 *
 * Exact up to DISTINCT_EXACT strings, by their hashes; beyond that a HyperLogLog of 4,096 registers
 * (Flajolet, Fusy, Gandouet, Meunier: "HyperLogLog: the analysis of a near-optimal cardinality
 * estimation algorithm", 2007) with hashes of 64 bits. The standard error is 1.04 / sqrt(4096) =
 * 1.6 %. The estimator is Ertl's ("New cardinality estimation algorithms for HyperLogLog sketches",
 * 2017, algorithm 6), which needs no tables to correct a bias for small numbers.
 *
 * The estimate is a function of the set only, not of the order of strings or the process. Uses up
 * to 4 KiB. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

enum { DISTINCT_FEW = 12, DISTINCT_EXACT = 256, DISTINCT_REGISTERS = 4096 };

struct distinct {
    union {
        uint64_t *hashes; /* open addressing, 0: empty; NULL: not needed yet */
        uint8_t *registers;
    };
    bool is_estimated;          /* there are registers */
    uint16_t count, capacity;   /* number of strings, while it is exact; slots in `hashes` */
    uint64_t few[DISTINCT_FEW]; /* the first hashes, to avoid another cache line */
};

/* Initialize with {0}. */
void distinct_done(struct distinct *distinct);
/* Removes all strings; keeps some memory. */
void distinct_clear(struct distinct *distinct);
/* 0; -ENOMEM: nothing has changed. */
int distinct_add(struct distinct *distinct, struct sl_slice text);
uint64_t distinct_estimate(const struct distinct *distinct);

/* The hash of a string: never 0, and the same in every process. */
uint64_t distinct_hash(struct sl_slice text);
/* The estimate for `count` registers, a power of two, with ranks of at most 53. */
uint64_t distinct_of_registers(const uint8_t *registers, size_t count);
