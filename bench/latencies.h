/* bench/latencies.h - a histogram of times, whose steps are 1/64 of the time itself. */
#pragma once

#include <stdint.h>

enum { LATENCIES_OCTAVE = 64 /* steps in each doubling */ };

struct latencies {
    uint64_t steps[40 * LATENCIES_OCTAVE];
    uint64_t count, slowest_ns;
};

void latencies_add(struct latencies *latencies, uint64_t ns);

/* Within which time was so large a share of them? To a step; 0 for none. */
double latencies_ms(const struct latencies *latencies, double share);
