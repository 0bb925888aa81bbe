/* gateway/dialects/tweet_id.h - converts ids to numbers, because clients of Twitter's APIs expect
 * that.
 *
 * An id that is not a number, which users of other producers may have, is replaced by a hash. */
#pragma once

#include <stdint.h>

#include "base/slice.h"

/* Below 10^18, so that it fits into 64 bits. */
int64_t tweet_id_number(struct sl_slice id);
