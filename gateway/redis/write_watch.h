/* gateway/redis/write_watch.h - checks whether Redis would accept a write.
 *
 * A Redis may answer and still refuse every write: its disk or memory is full, it was made a
 * replica or lacks replicas, or the database was flushed or damaged. So each shard is asked once a
 * second whether an event could be written, without changing anything (src/scripts/log_check.lua);
 * one worker does it for all. */
#pragma once

#include <uv.h>

#include "gateway/redis/shard_watch.h"

enum { WRITE_WATCH_MS = 1000 };

/* 0: every shard accepts writes. A negative errno as in sl_reply_check(): one does not, and `why`
 * says which. Called after each check that was answered. */
typedef void (*write_watch_fn)(void *context, int r, const char *why);

/* NULL: out of memory. */
struct shard_watch *write_watch_new(uv_loop_t *loop, struct redis_commands *commands,
                                    write_watch_fn looked, void *context);
