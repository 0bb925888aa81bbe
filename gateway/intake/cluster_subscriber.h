/* gateway/intake/cluster_subscriber.h - subscribes to the live channels of a Redis Cluster.
 *
 * It has a connection to each node that has shards, a subscription for each shard, and at one of
 * the nodes another one to all channels, for producers that use PUBLISH instead of SPUBLISH.
 *
 * It implements subscriber.h, whose callbacks it calls. `subscribed` is called when all of that is
 * ready, or when some shards are and the rest has not been for two seconds; `lost` when no shard is
 * received any more. In between, shards that are moved or whose node is down are looked for, while
 * the others continue. Belongs to the thread of its loop. */
#pragma once

#include "gateway/intake/subscriber.h"
#include "src/redis/cluster_map.h"

struct cluster_subscriber;

/* NULL: out of memory. */
struct cluster_subscriber *cluster_subscriber_new(const struct subscriber_settings *settings,
                                                  const struct subscriber_callbacks *callbacks,
                                                  void *context);
/* Like subscriber_free(). Call it before the commands are freed, which answer what is
 * outstanding. */
void cluster_subscriber_free(struct cluster_subscriber *subscriber);

/* Sets which node has which shard. Must not be called from a callback. */
void cluster_subscriber_set_map(struct cluster_subscriber *subscriber,
                                const struct sl_cluster_map *map);

/* The functions of subscriber.h. */
uint64_t cluster_subscriber_ping(struct cluster_subscriber *subscriber, uint64_t shards,
                                 uint64_t number);
bool cluster_subscriber_is_subscribed(const struct cluster_subscriber *subscriber);
uint64_t cluster_subscriber_heard(const struct cluster_subscriber *subscriber);
uint32_t cluster_subscriber_shards(const struct cluster_subscriber *subscriber);
const struct sl_meta *cluster_subscriber_meta(const struct cluster_subscriber *subscriber);
uint64_t cluster_subscriber_clock_until_ms(const struct cluster_subscriber *subscriber,
                                           uint32_t shard);
