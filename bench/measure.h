/* bench/measure.h - what the programs of this folder share: a clock, quantiles, exiting with an
 * error. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t measure_now_ns(void);
double measure_now_us(void);
double measure_cpu_us(void); /* of this thread */

/* Returns the quantile `share`: 0.5 is the median, 1 the maximum. Sorts the values. */
double measure_share(double *values, size_t count, double share);

/* Prints "NAME: what: why" and exits. `why` NULL: errno is described. */
_Noreturn void measure_fail(const char *what, const char *why);
