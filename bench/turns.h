/* bench/turns.h - how long is the longest turn of a loop, whatever else uses the machine?
 *
 * The same turns are run in several rounds, each is timed (CPU time of its thread, in which
 * interrupts and cold caches are, too), and the least of its times counts. */
#pragma once

#include <stddef.h>

struct turns {
    double *least_us, *now_us; /* of all rounds, and of this one */
    size_t count;
};

void turns_begin(struct turns *turns, size_t count);
void turns_end(struct turns *turns);
/* Turn `i` of this round; of several of this number the longest counts. */
void turns_note(struct turns *turns, size_t i, double us);
void turns_end_round(struct turns *turns);
double turns_longest_us(const struct turns *turns);
size_t turns_over(const struct turns *turns, double us);
