/* src/model/moment.h - a point of the log as people write it: an event's id, a time, or how long
 * ago.
 *
 *     114677036875776               an event's id
 *     -1h, 1h, 90s, 7d              so long ago; +1h: so long from now
 *     2026-11-22                    the beginning of that day, UTC
 *     2026-11-22T10:00:00+01:00     an RFC 3339 time
 *     1795341600, 1795341600000     Unix time, in seconds or milliseconds
 *
 * What is all digits is told apart by its size: ids that are as small as a Unix time would date
 * from the first month of 2026, and no database has them. Other numbers below SL_MOMENT_ID_MIN are
 * refused: taken for an id, they would ask for the whole log. */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"

#define SL_MOMENT_ID_MIN UINT64_C(10000000000000) /* 2026-01-29T06:10:51Z */

enum sl_moment_kind { SL_MOMENT_ID, SL_MOMENT_TIME };

struct sl_moment {
    enum sl_moment_kind kind;
    uint64_t value; /* an event id, or Unix milliseconds */
};

/* 0; -EINVAL: *reterr says what would be one. Nothing is said about the future: `until` may lie
 * there. */
int sl_moment_parse(struct sl_slice text, uint64_t now_ms, struct sl_moment *ret_moment,
                    struct failure *reterr);

/* The Unix time in milliseconds of either kind. */
uint64_t sl_moment_ms(const struct sl_moment *moment);

/* The cursor behind which a moment's events stand: the id itself, or the last before that time. */
uint64_t sl_moment_cursor(const struct sl_moment *moment);
