/* gateway/dialects/tweet_id.h - ids as clients of Twitter's APIs can bear them: numbers.
 *
 * An id that is no number, as users of other producers may have, becomes one by its hash. */
#pragma once

#include <stdint.h>

#include "base/slice.h"

/* Of less than 10^18, so that it fits into 64 bits. */
int64_t tweet_id_number(struct sl_slice id);
