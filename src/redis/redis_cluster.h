/* src/redis/redis_cluster.h - the nodes of a Redis Cluster, for a link: which one has a shard, and
 * a connection to it.
 *
 * Where the shards are is asked when it is not known or in doubt: of a node that is known, or where
 * none answers of a seed. A node that says that a shard has moved is believed at once. A node is
 * believed only if it holds the database that is expected: addresses are given to others, and a
 * client with an old one must not write into their database. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "src/call/call.h"
#include "src/model/database.h"
#include "src/redis/cluster_map.h"
#include "src/redis/redis_address.h"
#include "src/redis/redis_node.h"

struct redisReply;
struct sl_redis_cluster;

/* `address` outlives this and is not copied. NULL: out of memory. */
struct sl_redis_cluster *sl_redis_cluster_new(const struct sl_redis_address *address,
                                              uint32_t connect_ms, uint32_t answer_ms);
void sl_redis_cluster_free(struct sl_redis_cluster *cluster);

/* From now on nodes that hold another database are refused. */
void sl_redis_cluster_expect(struct sl_redis_cluster *cluster, const struct sl_meta *meta);

/* Something was not where it was thought to be: to be asked anew. */
void sl_redis_cluster_doubt(struct sl_redis_cluster *cluster);
/* Asks where the shards are, if that is in doubt and was not asked a moment ago. 0: what is known
 * may be used; -ECONNREFUSED: nobody has ever answered; -ENOTSUP: it is no cluster; another errno:
 * we are refused. */
int sl_redis_cluster_refresh(struct sl_redis_cluster *cluster, struct failure *reterr);

/* A shard is nobody's in the map. A node may be the last to hear who has it, so every other one
 * that is known, and every seed, is asked what the map lacks: once, until there is a new map.
 * Whether somebody is known to have the shard now. */
bool sl_redis_cluster_seek(struct sl_redis_cluster *cluster, uint32_t shard);

/* The nodes that have shards: node->shards. Good until the next call of this header. */
size_t sl_redis_cluster_count(const struct sl_redis_cluster *cluster);
struct sl_redis_node *sl_redis_cluster_at(struct sl_redis_cluster *cluster, size_t i);
/* NULL: nobody is known to have the shard. */
struct sl_redis_node *sl_redis_cluster_find(struct sl_redis_cluster *cluster, uint32_t shard);

/* Connects a node that is not connected. 0; -ECONNREFUSED: it is away, not ready, or holds another
 * database, which may pass; another errno: we are refused. */
int sl_redis_cluster_connect(struct sl_redis_cluster *cluster, struct sl_redis_node *node,
                             struct failure *reterr);

/* What a node answered for the shard: another one has it. */
void sl_redis_cluster_move(struct sl_redis_cluster *cluster, uint32_t shard,
                           const struct sl_redis_endpoint *endpoint);
/* Asks the node at `endpoint` about a plain command whose key has been moved there already, while
 * its slot has not. 0; -ECONNREFUSED: it was not asked; -EIO. */
int sl_redis_cluster_ask(struct sl_redis_cluster *cluster, const struct sl_redis_endpoint *endpoint,
                         const struct sl_call *call, struct redisReply **ret_reply,
                         struct failure *reterr);
