#include "src/model/duration.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* In descending order. */
static const struct {
    const char *name;
    uint64_t ms;
} units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};

enum { UNIT_COUNT = sizeof(units) / sizeof(units[0]) };

int sl_duration_parse(struct sl_slice text, uint64_t *ret_ms, struct failure *reterr)
{
    uint64_t number = 0;
    size_t digits = 0;

    for (; digits < text.size && text.data[digits] >= '0' && text.data[digits] <= '9'; digits++) {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(text.data[digits] - '0'), &number))
            goto refuse;
    }
    for (size_t i = 0; digits > 0 && i < UNIT_COUNT; i++) {
        if (sl_slice_is(sl_slice_from(text, digits), units[i].name) &&
            !__builtin_mul_overflow(number, units[i].ms, ret_ms))
            return 0;
    }
refuse:
    return failure_set(reterr, -EINVAL, "'%.*s' is not a duration like 90s, 30m, 24h or 7d",
                       SL_SLICE_ARG(text));
}

const char *sl_duration_print(uint64_t ms, char room[static SL_DURATION_TEXT_SIZE])
{
    size_t i = 0;

    while (ms % units[i].ms != 0 || (ms == 0 && units[i].ms > 1000))
        i++;
    snprintf(room, SL_DURATION_TEXT_SIZE, "%" PRIu64 "%s", ms / units[i].ms, units[i].name);
    return room;
}
