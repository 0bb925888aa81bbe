#include "bench/turns.h"

#include <math.h>
#include <stdlib.h>

#include "bench/measure.h"

void turns_begin(struct turns *turns, size_t count)
{
    turns->least_us = malloc(count * sizeof(double));
    turns->now_us = calloc(count, sizeof(double));
    turns->count = count;
    if (!turns->least_us || !turns->now_us)
        measure_fail("memory", NULL);
    for (size_t i = 0; i < count; i++)
        turns->least_us[i] = INFINITY;
}

void turns_end(struct turns *turns)
{
    free(turns->least_us);
    free(turns->now_us);
}

void turns_note(struct turns *turns, size_t i, double us)
{
    turns->now_us[i] = fmax(turns->now_us[i], us);
}

void turns_end_round(struct turns *turns)
{
    for (size_t i = 0; i < turns->count; i++) {
        turns->least_us[i] = fmin(turns->least_us[i], turns->now_us[i]);
        turns->now_us[i] = 0;
    }
}

double turns_longest_us(const struct turns *turns)
{
    double longest_us = 0;

    for (size_t i = 0; i < turns->count; i++)
        longest_us = fmax(longest_us, turns->least_us[i]);
    return longest_us;
}

size_t turns_over(const struct turns *turns, double us)
{
    size_t over = 0;

    for (size_t i = 0; i < turns->count; i++)
        over += turns->least_us[i] > us;
    return over;
}
