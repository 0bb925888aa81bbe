/* gateway/redis/cluster_watch.h - who has which shard of a Redis Cluster?
 *
 * Asks one node once a second, another one after some times, and at once (but no more often than
 * each 100 to 200 ms) when somebody is in doubt. A node that does not answer within a second is
 * left for another, a seed when no master does; so is one to whom a shard is nobody's. Once the
 * database is known a node is believed only if it has a shard of it: an address may be somebody
 * else's by now. Belongs to the thread of its loop. */
#pragma once

#include <uv.h>

#include "src/model/database.h"
#include "src/redis/cluster_map.h"
#include "src/redis/redis_address.h"

struct cluster_watch;

/* The first map, and each that differs from the one before. From the loop. */
typedef void (*cluster_map_fn)(void *context, const struct sl_cluster_map *map);

/* `address` has seeds. Begins at once. NULL: out of memory. */
struct cluster_watch *cluster_watch_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                        cluster_map_fn changed, void *context);
/* No callback comes any more. The loop must run once more to let go of the handles. */
void cluster_watch_free(struct cluster_watch *watch);

/* The map may be wrong; to be asked for soon. NULL is no watch. */
void cluster_watch_doubt(struct cluster_watch *watch);
/* From now on this database is expected. */
void cluster_watch_expect(struct cluster_watch *watch, const struct sl_meta *meta);
