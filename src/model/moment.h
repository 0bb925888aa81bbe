/* src/model/moment.h - a position in the log as people write it: an event's id, a time, or an age.
 *
 *     114677036875776               an event's id
 *     -1h, 1h, 90s, 7d              this long ago; +1h: this long from now
 *     2026-11-22                    the beginning of that day, UTC
 *     2026-11-22T10:00:00+01:00     an RFC 3339 time
 *     1795341600, 1795341600000     Unix time, in seconds or milliseconds
 *
 * A text of digits only is interpreted by its size: ids as small as a Unix time would date from the
 * first month of 2026, and no database contains such ids. Other numbers below SL_MOMENT_ID_MIN are
 * refused, because taken as an id they would select the whole log. */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"

#define SL_MOMENT_ID_MIN UINT64_C(10000000000000) /* 2026-01-29T06:10:51Z */

enum sl_moment_kind { SL_MOMENT_ID, SL_MOMENT_TIME };

struct sl_moment {
    enum sl_moment_kind kind;
    uint64_t value; /* an event id, or Unix time in milliseconds */
};

/* Parses any of the forms above. The time may lie in the future, for parameters such as `until`. 0;
 * -EINVAL: *reterr lists the valid forms. */
int sl_moment_parse(struct sl_slice text, uint64_t now_ms, struct sl_moment *ret_moment,
                    struct failure *reterr);

/* The Unix time of the moment in milliseconds. */
uint64_t sl_moment_ms(const struct sl_moment *moment);

/* The cursor after which the events of the moment begin: the id itself, or the last id before the
 * time. */
uint64_t sl_moment_cursor(const struct sl_moment *moment);
