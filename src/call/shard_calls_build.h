/* src/call/shard_calls_build.h - how the builders of many fill a sl_shard_calls.
 *
 *     begin(count of things)
 *     for each thing, in order: the call of its shard (fresh: begin it), the thing's arguments
 *     finish()
 *
 * As with one call, memory that runs out is told at the end, and a call can be built anew. */
#pragma once

#include <stdbool.h>

#include "base/failure.h"
#include "src/call/call_build.h"
#include "src/call/shard_calls.h"

/* 0; -ENOMEM. */
int sl_shard_calls_begin(struct sl_shard_calls *calls, const struct sl_meta *meta, size_t count,
                         struct failure *reterr);

/* The next thing lives in `shard`: the call to add it to. *ret_is_new: it is to be begun first. */
struct sl_call *sl_shard_calls_next(struct sl_shard_calls *calls, uint32_t shard, bool *ret_is_new);

/* `r`: 0, or why they could not be filled. 0; -ENOMEM, or `r`: none can be sent. */
int sl_shard_calls_finish(struct sl_shard_calls *calls, int r, struct failure *reterr);
