/* id_floor.c - a stack of ids that rise, each the lowest of all that came behind the one below it.
 *
 * A new id takes away those that are not lower, since it comes behind them. When the stack is full,
 * neighbours become one step, with the lower id, where both together are short beside how far back
 * they lie. So steps grow with their age and number some hundreds, whatever the sequence's length:
 * about FINEST times the logarithm of it. Adding costs a constant on average, as each time a
 * quarter of the stack comes free; asking is a binary search. */
#include "gateway/delivery/id_floor.h"

#include <assert.h>

enum { FINEST = 32 }; /* a step is at most so great a part of how far back it lies */

/* Joins the steps that are together at most 1/`fineness` of how far back they end. */
static void join(struct id_floor *floor, uint64_t newest, uint64_t fineness)
{
    struct id_floor_step *steps = floor->steps;
    uint64_t begin = steps[0].sequence; /* of the step that is being made */
    size_t count = 0;

    for (size_t i = 1; i < floor->count; i++) {
        if ((steps[i].sequence - begin) * fineness <= newest - steps[i].sequence) {
            steps[count].sequence = steps[i].sequence; /* with the lower id of both */
            continue;
        }
        begin = steps[count].sequence;
        steps[++count] = steps[i];
    }
    floor->count = count + 1;
}

static void make_room(struct id_floor *floor, uint64_t newest)
{
    for (uint64_t fineness = FINEST; floor->count > ID_FLOOR_STEPS * 3 / 4 && fineness > 0;
         fineness /= 2)
        join(floor, newest, fineness);
    assert(floor->count < ID_FLOOR_STEPS);
}

void id_floor_add(struct id_floor *floor, uint64_t sequence, uint64_t id)
{
    assert(id > 0);
    assert(floor->count == 0 || sequence >= floor->steps[floor->count - 1].sequence);
    while (floor->count > 0 && floor->steps[floor->count - 1].id >= id)
        floor->count--;
    if (floor->count == ID_FLOOR_STEPS)
        make_room(floor, sequence);
    floor->steps[floor->count++] = (struct id_floor_step){sequence, id};
}

uint64_t id_floor_from(const struct id_floor *floor, uint64_t sequence)
{
    size_t low = 0, high = floor->count;

    if (high == 0 || floor->steps[high - 1].sequence < sequence)
        return UINT64_MAX;
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (floor->steps[middle].sequence < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return floor->steps[low].id;
}
