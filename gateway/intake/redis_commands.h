/* gateway/intake/redis_commands.h - ordinary commands to Redis, on the loop.
 *
 * One connection, made when the first command needs it and made anew when it was lost. Every
 * command is answered exactly once: with Redis's reply, or with none and the reason. A Redis that
 * is slow or gone costs the callers their time limit and nobody else anything. */
#pragma once

#include <hiredis/hiredis.h>
#include <stdint.h>
#include <uv.h>

#include "src/call.h"
#include "src/redis_address.h"

struct redis_commands;

/* `reply` is NULL when there is none; then `why` is a sentence. Belongs to the caller of this. */
typedef void (*redis_reply_fn)(void *owner, const redisReply *reply, const char *why);

/* NULL: out of memory. */
struct redis_commands *redis_commands_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                          uint32_t timeout_ms);
/* Commands under way are answered without a reply. The loop must run on to let go of handles. */
void redis_commands_free(struct redis_commands *commands);

/* Sends the call, whose memory is taken over even on failure. A script that Redis does not know is
 * sent again with its text. 0: `done` will be called, later; -ENOMEM: it will not. */
int redis_commands_run_take(struct redis_commands *commands, struct sl_call *call,
                            redis_reply_fn done, void *owner);
