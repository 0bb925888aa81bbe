/* gateway/counts/id_ranges.h - a short list of ranges of ids, sorted and disjoint.
 *
 * If it is full, its oldest range is merged with the next one: it then covers more than was added,
 * never less. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ID_RANGES_MAX = 16 };

struct id_range {
    uint64_t first, last;
};

/* Initialize with {0}. */
struct id_ranges {
    struct id_range list[ID_RANGES_MAX + 1];
    size_t count;
};

void id_ranges_add(struct id_ranges *ranges, uint64_t first, uint64_t last);
void id_ranges_add_all(struct id_ranges *ranges, const struct id_ranges *more);
bool id_ranges_overlap(const struct id_ranges *ranges, uint64_t first, uint64_t last);
