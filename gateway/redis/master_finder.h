/* gateway/redis/master_finder.h - asks the sentinels for the master, on the loop.
 *
 * It asks one after the other, beginning with the last one that knew it; each has a second to
 * accept the connection, and one to answer. */
#pragma once

#include <stdint.h>
#include <uv.h>

#include "src/redis/redis_address.h"

struct master_finder;

/* The master's address; or NULL if no sentinel knows it, and why. */
typedef void (*master_found_fn)(void *context, const struct sl_redis_endpoint *endpoint,
                                const char *why);

/* `address` must have sentinels. NULL: out of memory. */
struct master_finder *master_finder_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                        master_found_fn found, void *context);
/* No callback is called any more. The loop must run once more to close the handles. */
void master_finder_free(struct master_finder *finder);

/* Starts asking, or starts again. One callback follows, later. */
void master_finder_start(struct master_finder *finder);
/* No callback is called until the next start. */
void master_finder_stop(struct master_finder *finder);
