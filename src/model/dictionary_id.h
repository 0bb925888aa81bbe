/* src/model/dictionary_id.h - ids of dictionaries of zstd: numbers, as they stand in their frames.
 *
 * From so many ids, below which zstd's own stand, two bytes of a frame are enough for one. */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"

enum { SL_DICTIONARY_ID_MIN = 32768, SL_DICTIONARY_ID_MAX = 65535 };

/* 0; -EINVAL: that is no id, and `reterr` says so. */
int sl_dictionary_id_parse(struct sl_slice text, uint32_t *ret_id, struct failure *reterr);
