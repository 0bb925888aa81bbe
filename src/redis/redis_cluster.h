/* src/redis/redis_cluster.h - the nodes of a Redis Cluster for a link: which one holds a shard, and
 * a connection to it.
 *
 * If the map of the shards is unknown or doubtful, a known node is asked, or if none answers, a
 * seed. A redirection by a node is followed at once. A node is accepted only if it holds the
 * expected database: addresses can be reassigned, and a client with an old address must not write
 * to another database. */
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

/* `address` is borrowed as long as the cluster exists. NULL: out of memory. */
struct sl_redis_cluster *sl_redis_cluster_new(const struct sl_redis_address *address,
                                              uint32_t connect_ms, uint32_t answer_ms);
void sl_redis_cluster_free(struct sl_redis_cluster *cluster);

/* From now on, nodes that hold another database are refused. */
void sl_redis_cluster_expect(struct sl_redis_cluster *cluster, const struct sl_meta *meta);

/* Marks the map as doubtful, so that it is asked for again. */
void sl_redis_cluster_doubt(struct sl_redis_cluster *cluster);
/* Asks for the map if it is doubtful and was not asked for a moment ago. 0: the map may be used;
 * -ECONNREFUSED: no node has ever answered; -ENOTSUP: not a cluster; another errno: the login was
 * refused. */
int sl_redis_cluster_refresh(struct sl_redis_cluster *cluster, struct failure *reterr);

/* Looks for a shard that has no node in the map. Since some nodes hear of changes late, all known
 * nodes and seeds are asked for what the map lacks; once, until there is a new map. Returns whether
 * the node of the shard is known now. */
bool sl_redis_cluster_seek(struct sl_redis_cluster *cluster, uint32_t shard);

/* The nodes that have shards, see node->shards. Valid until the next call of a function of this
 * header. */
size_t sl_redis_cluster_count(const struct sl_redis_cluster *cluster);
struct sl_redis_node *sl_redis_cluster_at(struct sl_redis_cluster *cluster, size_t i);
/* NULL: no node is known to hold the shard. */
struct sl_redis_node *sl_redis_cluster_find(struct sl_redis_cluster *cluster, uint32_t shard);

/* Connects a node that is not connected. 0; -ECONNREFUSED: it is down, not ready, or holds another
 * database, all of which may be temporary; another errno: the login was refused. */
int sl_redis_cluster_connect(struct sl_redis_cluster *cluster, struct sl_redis_node *node,
                             struct failure *reterr);

/* Records the answer of a node that another one holds the shard. */
void sl_redis_cluster_move(struct sl_redis_cluster *cluster, uint32_t shard,
                           const struct sl_redis_endpoint *endpoint);
/* Sends a plain command to the node at `endpoint`, because its key has already been moved there but
 * the slot has not. 0; -ECONNREFUSED: it was not sent; -EIO. */
int sl_redis_cluster_ask(struct sl_redis_cluster *cluster, const struct sl_redis_endpoint *endpoint,
                         const struct sl_call *call, struct redisReply **ret_reply,
                         struct failure *reterr);
