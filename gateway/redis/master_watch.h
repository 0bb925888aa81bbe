/* gateway/redis/master_watch.h - hears from every sentinel when the master is replaced.
 *
 * From all of them, for the one that knows first tells first: the one in charge of a failover
 * speaks when all of it is done, the others as soon as they hear of it. A sentinel that cannot be
 * heard is tried again, after 0.1 s at first and 5 s at most; what it may have said meanwhile is in
 * the answer that it gives when it is back. */
#pragma once

#include <uv.h>

#include "gateway/metrics/metrics.h"
#include "src/redis/redis_address.h"
#include "src/redis/sentinel.h"

struct master_watch;

struct master_watch_callbacks {
    void (*news)(void *context, const struct sl_sentinel_news *news);
    /* A sentinel that has just come (back) into hearing names this one. */
    void (*named)(void *context, const struct sl_redis_endpoint *master);
};

/* `address` has sentinels. NULL: out of memory. */
struct master_watch *master_watch_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                      struct metrics *metrics,
                                      const struct master_watch_callbacks *callbacks,
                                      void *context);
/* No callback comes any more. The loop must run once more to let go of the handles. */
void master_watch_free(struct master_watch *watch);
