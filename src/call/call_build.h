/* src/call/call_build.h - used by the builders to fill a call: begin, add arguments, finish.
 *
 * Out of memory is not reported at once but by sl_call_finish(). */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "src/call/call.h"
#include "src/call/scripts.h"
#include "src/model/database.h"

/* Resets the call and begins a plain command, whose first argument is its name. */
void sl_call_begin(struct sl_call *call, uint32_t shard, bool is_repeatable);

/* Begins a script call: the key and the arguments that all scripts begin with. `request_id` may be
 * absent. */
void sl_call_begin_script(struct sl_call *call, const struct sl_script *script, uint32_t shard,
                          uint32_t shards, struct sl_slice request_id);

/* Like sl_call_begin_script(), for a script that may be repeated in any case: a read, or an
 * idempotent change. */
void sl_call_begin_repeatable(struct sl_call *call, const struct sl_script *script, uint32_t shard,
                              uint32_t shards);

void sl_call_add(struct sl_call *call, struct sl_slice argument); /* absent: an empty argument */
void sl_call_add_str(struct sl_call *call, const char *argument);
void sl_call_add_id(struct sl_call *call, uint64_t id);

/* 0; -ENOMEM: the call cannot be sent. */
int sl_call_finish(struct sl_call *call, struct failure *reterr);
