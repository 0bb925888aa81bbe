/* id_ranges.c - an array; ranges that overlap a new one are merged with it. */
#include "gateway/counts/id_ranges.h"

#include <string.h>

static void remove_range(struct id_ranges *ranges, size_t i)
{
    ranges->count--;
    memmove(&ranges->list[i], &ranges->list[i + 1], (ranges->count - i) * sizeof(struct id_range));
}

void id_ranges_add(struct id_ranges *ranges, uint64_t first, uint64_t last)
{
    struct id_range *list = ranges->list;
    size_t i = 0;

    while (i < ranges->count && list[i].last < first)
        i++;
    while (i < ranges->count && list[i].first <= last) {
        first = list[i].first < first ? list[i].first : first;
        last = list[i].last > last ? list[i].last : last;
        remove_range(ranges, i);
    }
    memmove(&list[i + 1], &list[i], (ranges->count - i) * sizeof(struct id_range));
    list[i] = (struct id_range){first, last};
    ranges->count++;
    if (ranges->count > ID_RANGES_MAX) {
        list[1].first = list[0].first;
        remove_range(ranges, 0);
    }
}

void id_ranges_add_all(struct id_ranges *ranges, const struct id_ranges *more)
{
    for (size_t i = 0; i < more->count; i++)
        id_ranges_add(ranges, more->list[i].first, more->list[i].last);
}

bool id_ranges_overlap(const struct id_ranges *ranges, uint64_t first, uint64_t last)
{
    for (size_t i = 0; i < ranges->count; i++) {
        if (ranges->list[i].first <= last && ranges->list[i].last >= first)
            return true;
    }
    return false;
}
