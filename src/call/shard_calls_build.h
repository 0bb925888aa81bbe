/* src/call/shard_calls_build.h - used by the builders for many items to fill a sl_shard_calls.
 *
 *     begin(number of items)
 *     for each item, in order: get the call of its shard (begin it if it is new), add the arguments
 *     finish()
 *
 * As with a single call, out of memory is reported at the end, and the calls can be rebuilt. */
#pragma once

#include <stdbool.h>

#include "base/failure.h"
#include "src/call/call_build.h"
#include "src/call/shard_calls.h"

/* 0; -ENOMEM. */
int sl_shard_calls_begin(struct sl_shard_calls *calls, const struct sl_meta *meta, size_t count,
                         struct failure *reterr);

/* Returns the call of `shard`, to which the next item must be added. *ret_is_new: begin the call
 * first. */
struct sl_call *sl_shard_calls_next(struct sl_shard_calls *calls, uint32_t shard, bool *ret_is_new);

/* `r`: 0, or the error with which filling failed. 0; -ENOMEM or `r`: the calls cannot be sent. */
int sl_shard_calls_finish(struct sl_shard_calls *calls, int r, struct failure *reterr);
