/* src/call/call_build.h - how the builders fill a call: begin, add arguments, finish.
 *
 * Memory that runs out is remembered, not reported at once: sl_call_finish() tells. */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "src/call/call.h"
#include "src/call/scripts.h"
#include "src/model/database.h"

/* Forgets what the call was. A plain command: the first argument is its name. */
void sl_call_begin(struct sl_call *call, uint32_t shard, bool is_repeatable);

/* A script: its key and the arguments that all scripts begin with. `request_id` may be absent. */
void sl_call_begin_script(struct sl_call *call, const struct sl_script *script, uint32_t shard,
                          uint32_t shards, struct sl_slice request_id);

/* The same for one that may be sent again whatever became of it: a read, or a change that is made
 * once however often it is asked for. */
void sl_call_begin_repeatable(struct sl_call *call, const struct sl_script *script, uint32_t shard,
                              uint32_t shards);

void sl_call_add(struct sl_call *call, struct sl_slice argument); /* absent: empty */
void sl_call_add_str(struct sl_call *call, const char *argument);
void sl_call_add_id(struct sl_call *call, uint64_t id);

/* 0; -ENOMEM: the call cannot be sent. */
int sl_call_finish(struct sl_call *call, struct failure *reterr);
