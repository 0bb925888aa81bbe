/* gateway/intake/cluster_subscriber.h - hears the live channels of a Redis Cluster: a connection to
 * each node that has shards, a subscription for each shard, and at one of them another to all
 * channels for those who PUBLISH instead of SPUBLISH.
 *
 * For subscriber.h, whose callbacks it calls. It hears (`subscribed`) when all of that is there, or
 * some shards, and the rest has not come for two seconds; and hears no more (`lost`) when no shard
 * is heard. In between what is moved, or whose node is away, is looked for, and the others go on.
 * Belongs to the thread of its loop. */
#pragma once

#include "gateway/intake/subscriber.h"
#include "src/redis/cluster_map.h"

struct cluster_subscriber;

/* NULL: out of memory. */
struct cluster_subscriber *cluster_subscriber_new(const struct subscriber_settings *settings,
                                                  const struct subscriber_callbacks *callbacks,
                                                  void *context);
/* As subscriber_free(). Before the commands are freed, which answer what is under way. */
void cluster_subscriber_free(struct cluster_subscriber *subscriber);

/* Who has which shard. Not from within a callback of this. */
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
