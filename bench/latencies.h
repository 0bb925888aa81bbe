/* bench/latencies.h - a histogram of times, with steps of 1/64 of the time. */
#pragma once

#include <stdint.h>

enum { LATENCIES_OCTAVE = 64 /* steps in each doubling */ };

struct latencies {
    uint64_t steps[40 * LATENCIES_OCTAVE];
    uint64_t count, slowest_ns;
};

void latencies_add(struct latencies *latencies, uint64_t ns);

/* Returns the time within which this share of them was, rounded to a step; 0 if there are none. */
double latencies_ms(const struct latencies *latencies, double share);
