/* gateway/counts/distinct.h - how many different strings have been added?
 *
 * Exact up to DISTINCT_EXACT of them, by their hashes; beyond that a HyperLogLog of 4,096 registers
 * (Flajolet, Fusy, Gandouet, Meunier: "HyperLogLog: the analysis of a near-optimal cardinality
 * estimation algorithm", 2007), whose standard error is 1.04 / sqrt(4096) = 1.6 %, for hashes of 64
 * bits and with the estimator of Ertl ("New cardinality estimation algorithms for HyperLogLog
 * sketches", 2017, algorithm 6), which has no bias for small numbers to be corrected by tables.
 *
 * The estimate is a function of the set alone: not of the order, nor of the process. Takes up to
 * 4 KiB. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

enum { DISTINCT_FEW = 12, DISTINCT_EXACT = 256, DISTINCT_REGISTERS = 4096 };

struct distinct {
    uint8_t *registers;         /* NULL: not that many */
    size_t count, capacity;     /* of strings, and of `hashes` */
    uint64_t few[DISTINCT_FEW]; /* so many of them are here, where nothing else must be read */
    uint64_t *hashes; /* those of more: open addressing, 0: empty; NULL: never so many yet */
};

/* Begins as {0}. */
void distinct_done(struct distinct *distinct);
/* Forgets what was added, keeps some memory. */
void distinct_clear(struct distinct *distinct);
/* 0; -ENOMEM: nothing has changed. */
int distinct_add(struct distinct *distinct, struct sl_slice text);
uint64_t distinct_estimate(const struct distinct *distinct);

/* What is kept of a string: never 0, and the same in every process. */
uint64_t distinct_hash(struct sl_slice text);
/* The estimate from so many registers, a power of two, whose ranks are at most 53. */
uint64_t distinct_of_registers(const uint8_t *registers, size_t count);
