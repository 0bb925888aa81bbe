/* bench/measure.h - what the programs of this folder share: a clock, times in order, giving up. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t measure_now_ns(void);
double measure_now_us(void);
double measure_cpu_us(void); /* of this thread */

/* The value that so large a share of them reaches at the most: 0.5 is the median, 1 the largest.
 * Sorts them. */
double measure_share(double *values, size_t count, double share);

/* "NAME: what: why", and the program ends. `why` NULL: errno says. */
_Noreturn void measure_fail(const char *what, const char *why);
