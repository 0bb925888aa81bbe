/* gateway/delivery/id_floor.h - the lowest id that has come since some point in a sequence.
 *
 * Ids of one shard rise, those of several come in any order, so the newest id says nothing about
 * what is still to come. Whoever has everything before a point in the sequence has everything below
 * the lowest id from there on. The further back the point lies, the more ids before it count, too:
 * those of a sixteenth of the way back at most. So the answer may be too low, and never is too
 * high. A fixed amount of memory; one thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { ID_FLOOR_STEPS = 512 };

/* The floor rises in steps: from behind the step before up to `sequence`, it is `id`. */
struct id_floor {
    struct id_floor_step {
        uint64_t sequence, id;
    } steps[ID_FLOOR_STEPS];
    size_t count;
};

/* `id`, not 0, comes at this sequence, which is not below the last one. */
void id_floor_add(struct id_floor *floor, uint64_t sequence, uint64_t id);

/* The lowest id at or behind the sequence; UINT64_MAX: there is none. */
uint64_t id_floor_from(const struct id_floor *floor, uint64_t sequence);
