#include "tests/support/draw.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t draw_seed;
static uint64_t state;

void draw_begin(void)
{
    const char *given = getenv("SLUICE_TEST_SEED");

    draw_seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    state = draw_seed;
    printf("SLUICE_TEST_SEED=%" PRIu64 "\n", draw_seed);
    fflush(stdout); /* before a fork duplicates the output */
}

void draw_begin_as(int process)
{
    state = draw_seed + (uint64_t)process * UINT64_C(0x9E3779B97F4A7C15);
}

/* Knuth's MMIX generator; its low bits are poor. */
uint32_t draw(uint32_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % below;
}
