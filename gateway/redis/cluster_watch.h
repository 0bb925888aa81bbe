/* gateway/redis/cluster_watch.h - keeps track of which node of a Redis Cluster has each shard.
 *
 * It asks one node once a second, and another one after some times; and at once (at most every 100
 * to 200 ms) when the map is doubted. If a node does not answer within a second, or does not know
 * the node of a shard, another one is asked, a seed if no master answers. Once the database is
 * known, a node is accepted only if it has a shard of it, because addresses can be reassigned.
 * Belongs to the thread of its loop. */
#pragma once

#include <uv.h>

#include "src/model/database.h"
#include "src/redis/cluster_map.h"
#include "src/redis/redis_address.h"

struct cluster_watch;

/* Called from the loop with the first map, and each one that differs from the last. */
typedef void (*cluster_map_fn)(void *context, const struct sl_cluster_map *map);

/* `address` must have seeds. Starts at once. NULL: out of memory. */
struct cluster_watch *cluster_watch_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                        cluster_map_fn changed, void *context);
/* No callback is called any more. The loop must run once more to close the handles. */
void cluster_watch_free(struct cluster_watch *watch);

/* The map may be wrong: asks soon. NULL is allowed. */
void cluster_watch_doubt(struct cluster_watch *watch);
/* From now on only nodes with this database are accepted. */
void cluster_watch_expect(struct cluster_watch *watch, const struct sl_meta *meta);
