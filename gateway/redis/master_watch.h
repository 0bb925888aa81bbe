/* gateway/redis/master_watch.h - subscribes to every sentinel's announcements of new masters.
 *
 * To all of them, because the first to know announces it first: the sentinel that does the failover
 * only when it is complete, the others as soon as they learn of it. A connection that cannot be
 * made is tried again, after 0.1 s at first and 5 s at most; what was missed meanwhile is in the
 * first answer afterwards. */
#pragma once

#include <uv.h>

#include "gateway/metrics/metrics.h"
#include "src/redis/redis_address.h"
#include "src/redis/sentinel.h"

struct master_watch;

struct master_watch_callbacks {
    void (*news)(void *context, const struct sl_sentinel_news *news);
    /* A sentinel to which a connection was just made (again) names this master. */
    void (*named)(void *context, const struct sl_redis_endpoint *master);
};

/* `address` must have sentinels. NULL: out of memory. */
struct master_watch *master_watch_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                      struct metrics *metrics,
                                      const struct master_watch_callbacks *callbacks,
                                      void *context);
/* No callback is called any more. The loop must run once more to close the handles. */
void master_watch_free(struct master_watch *watch);
