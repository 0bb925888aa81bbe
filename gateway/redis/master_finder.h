/* gateway/redis/master_finder.h - asks the sentinels who the master is, on the loop.
 *
 * One after the other, from the one that knew last; each has a second to accept the connection, and
 * one to answer. */
#pragma once

#include <stdint.h>
#include <uv.h>

#include "src/redis/redis_address.h"

struct master_finder;

/* Where it is; or NULL when nobody knows, and why. */
typedef void (*master_found_fn)(void *context, const struct sl_redis_endpoint *endpoint,
                                const char *why);

/* `address` has sentinels. NULL: out of memory. */
struct master_finder *master_finder_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                        master_found_fn found, void *context);
/* No callback comes any more. The loop must run once more to let go of the handles. */
void master_finder_free(struct master_finder *finder);

/* Begins to ask, once more if it was asking: one callback comes, later. */
void master_finder_start(struct master_finder *finder);
/* No callback comes until the next start. */
void master_finder_stop(struct master_finder *finder);
