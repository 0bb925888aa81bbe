/* src/model/duration.h - durations as people write them: 500ms, 90s, 30m, 24h, 7d. */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"

enum { SL_DURATION_TEXT_SIZE = 24 };

/* Parses one number followed by one unit, without a space. 0; -EINVAL: *reterr says why. */
int sl_duration_parse(struct sl_slice text, uint64_t *ret_ms, struct failure *reterr);

/* Writes the duration in the largest unit that represents it exactly, and a NUL. 0 is written as
 * 0s. Returns `room`. */
const char *sl_duration_print(uint64_t ms, char room[static SL_DURATION_TEXT_SIZE]);
