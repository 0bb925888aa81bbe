/* src/model/dictionary_id.h - ids of zstd dictionaries: the numbers that stand in zstd frames.
 *
 * Lower ids are reserved for zstd's own dictionaries. Ids in this range take two bytes of a
 * frame. */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"

enum { SL_DICTIONARY_ID_MIN = 32768, SL_DICTIONARY_ID_MAX = 65535 };

/* 0; -EINVAL: that is no id, and `reterr` says so. */
int sl_dictionary_id_parse(struct sl_slice text, uint32_t *ret_id, struct failure *reterr);
