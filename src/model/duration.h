/* src/model/duration.h - a length of time as people write it: 500ms, 90s, 30m, 24h, 7d. */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"

enum { SL_DURATION_TEXT_SIZE = 24 };

/* One number and one unit, nothing between. 0; -EINVAL: *reterr says so. */
int sl_duration_parse(struct sl_slice text, uint64_t *ret_ms, struct failure *reterr);

/* Writes it in the largest unit that leaves no fraction, and a NUL; returns `room`. Nothing is 0s.
 */
const char *sl_duration_print(uint64_t ms, char room[static SL_DURATION_TEXT_SIZE]);
