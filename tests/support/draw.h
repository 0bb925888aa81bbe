/* tests/support/draw.h - draws that can be repeated: SLUICE_TEST_SEED=N in the environment. */
#pragma once

#include <stdint.h>

extern uint64_t draw_seed;

/* Takes the seed from the environment, or the clock, and prints it. */
void draw_begin(void);

/* Draws of its own for each of several processes with one seed. */
void draw_begin_as(int process);

/* A number below `below`. */
uint32_t draw(uint32_t below);
