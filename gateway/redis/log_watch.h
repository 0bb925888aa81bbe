/* gateway/redis/log_watch.h - how long, old and large are the shards' logs? For /metrics.
 *
 * Asks Redis every ten seconds, shard by shard; one worker does it for all. A log that cannot be
 * asked keeps what was last known of it. */
#pragma once

#include <stdint.h>
#include <uv.h>

#include "gateway/metrics/metrics.h"
#include "gateway/redis/redis_commands.h"

enum { LOG_WATCH_MS = 10000 };

struct log_watch;

/* NULL: out of memory. */
struct log_watch *log_watch_new(uv_loop_t *loop, struct redis_commands *commands,
                                struct metrics *metrics);
/* After the commands. The loop must run once more to let go of the handle. */
void log_watch_free(struct log_watch *watch);

/* The database has so many shards: asks at once, and from then on. */
void log_watch_begin(struct log_watch *watch, uint32_t shards);
