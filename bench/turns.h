/* bench/turns.h - how long is the longest turn of a loop, independent of other programs?
 *
 * The same turns are run in several rounds. Each is timed (CPU time of its thread, which includes
 * interrupts and cold caches), and the minimum of its times counts. */
#pragma once

#include <stddef.h>

struct turns {
    double *least_us, *now_us; /* by turn: the minimum over all rounds, and of this round */
    size_t count;
};

void turns_begin(struct turns *turns, size_t count);
void turns_end(struct turns *turns);
/* Records turn `i` of this round; of several turns with the same number the longest counts. */
void turns_note(struct turns *turns, size_t i, double us);
void turns_end_round(struct turns *turns);
double turns_longest_us(const struct turns *turns);
size_t turns_over(const struct turns *turns, double us);
