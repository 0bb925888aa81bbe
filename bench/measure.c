#include "bench/measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t measure_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

double measure_now_us(void)
{
    return (double)measure_now_ns() / 1e3;
}

double measure_cpu_us(void)
{
    return (double)read_clock(CLOCK_THREAD_CPUTIME_ID) / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double measure_share(double *values, size_t count, double share)
{
    size_t at = (size_t)((double)count * share);

    qsort(values, count, sizeof(*values), by_value);
    return values[at < count ? at : count - 1];
}

void measure_fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
            why ? why : strerror(errno));
    exit(1);
}
