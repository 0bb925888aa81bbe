#include "bench/latencies.h"

#include <stddef.h>

enum { OCTAVE = LATENCIES_OCTAVE, STEPS = 40 * OCTAVE };

static size_t step_of(uint64_t ns)
{
    unsigned octave;
    size_t step;

    if (ns < OCTAVE)
        return ns;
    octave = 63 - (unsigned)__builtin_clzll(ns);
    step = (octave - 5) * (size_t)OCTAVE + (ns >> (octave - 6) & (OCTAVE - 1));
    return step < STEPS ? step : STEPS - 1;
}

static double step_ms(size_t step)
{
    size_t octave = step / OCTAVE + 5;

    if (step < OCTAVE)
        return (double)step / 1e6;
    return (double)((OCTAVE + step % OCTAVE) << (octave - 6)) / 1e6;
}

void latencies_add(struct latencies *latencies, uint64_t ns)
{
    latencies->steps[step_of(ns)]++;
    latencies->count++;
    if (ns > latencies->slowest_ns)
        latencies->slowest_ns = ns;
}

double latencies_ms(const struct latencies *latencies, double share)
{
    uint64_t seen = 0;

    for (size_t i = 0; i < STEPS; i++) {
        seen += latencies->steps[i];
        if (seen > 0 && (double)seen >= share * (double)latencies->count)
            return step_ms(i);
    }
    return 0;
}
