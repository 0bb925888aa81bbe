/* tests/support/draw.h - repeatable random numbers: SLUICE_TEST_SEED=N in the environment. */
#pragma once

#include <stdint.h>

extern uint64_t draw_seed;

/* Takes the seed from the environment, or from the clock, and prints it. */
void draw_begin(void);

/* Different random numbers for each of several processes with the same seed. */
void draw_begin_as(int process);

/* Returns a number below `below`. */
uint32_t draw(uint32_t below);
