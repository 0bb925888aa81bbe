/* gateway/redis/log_watch.h - how long, old and large are the shards' logs? For /metrics.
 *
 * Asks Redis every ten seconds, shard by shard; one worker does it for all. A log that cannot be
 * asked keeps what was last known of it. */
#pragma once

#include <uv.h>

#include "gateway/metrics/metrics.h"
#include "gateway/redis/shard_watch.h"

enum { LOG_WATCH_MS = 10000 };

/* NULL: out of memory. */
struct shard_watch *log_watch_new(uv_loop_t *loop, struct redis_commands *commands,
                                  struct metrics *metrics);
