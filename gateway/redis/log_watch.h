/* gateway/redis/log_watch.h - reads length, age and size of the shards' logs for /metrics.
 *
 * Asks Redis every ten seconds, shard by shard; one worker does it for all. If a log cannot be
 * read, its last values are kept. */
#pragma once

#include <uv.h>

#include "gateway/metrics/metrics.h"
#include "gateway/redis/shard_watch.h"

enum { LOG_WATCH_MS = 10000 };

/* NULL: out of memory. */
struct shard_watch *log_watch_new(uv_loop_t *loop, struct redis_commands *commands,
                                  struct metrics *metrics);
