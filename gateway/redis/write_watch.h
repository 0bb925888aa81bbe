/* gateway/redis/write_watch.h - would Redis take a write now?
 *
 * A Redis may answer, and refuse every write: its disk is full, its memory is, it was made a
 * replica or lacks some, the database was flushed or damaged. So each shard is asked once a second
 * whether an event could be written, in a way that changes nothing (src/scripts/log_check.lua); one
 * worker does it for all. */
#pragma once

#include <uv.h>

#include "gateway/redis/shard_watch.h"

enum { WRITE_WATCH_MS = 1000 };

/* 0: every shard takes writes. A negative errno, of sl_reply_check(): one does not, `why` says
 * which. Comes with each look that was answered. */
typedef void (*write_watch_fn)(void *context, int r, const char *why);

/* NULL: out of memory. */
struct shard_watch *write_watch_new(uv_loop_t *loop, struct redis_commands *commands,
                                    write_watch_fn looked, void *context);
