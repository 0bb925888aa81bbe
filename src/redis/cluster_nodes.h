/* src/redis/cluster_nodes.h - all nodes of a Redis Cluster, and the slots being moved between them.
 *
 * Includes nodes without slots. For programs that move shards; to find the node of a shard,
 * src/redis/cluster_map.h is enough. Plain values without I/O: CLUSTER SHARDS (Redis 7.0) returns
 * the nodes, and CLUSTER NODES of each node says which of its own slots are open. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "src/model/id.h"
#include "src/redis/redis_address.h"

struct redisReply;

enum { SL_CLUSTER_ID_SIZE = 41 };

struct sl_cluster_node {
    char id[SL_CLUSTER_ID_SIZE];
    struct sl_redis_endpoint endpoint; /* an empty host: the cluster has no name for it */
    bool is_master, is_online;
    bool is_failed;  /* neither online nor loading; for a replica this may be outdated */
    uint64_t shards; /* of a master: the shards whose slots it has; bit S is shard S */
};

struct sl_cluster_nodes {
    struct sl_cluster_node *at;
    size_t count;
};

void sl_cluster_nodes_done(struct sl_cluster_nodes *nodes);

/* Reads the reply to CLUSTER SHARDS. `asked` is the node that answered; with `is_tls` the ports are
 * those for TLS. 0: call sl_cluster_nodes_done() at the end; -EBADMSG: not a valid answer; -ENOMEM;
 * else as sl_reply_check(). */
int sl_cluster_nodes_reply(const struct redisReply *reply, const struct sl_redis_endpoint *asked,
                           bool is_tls, struct sl_cluster_nodes *ret_nodes, struct failure *reterr);

/* The open slots of one node, by shard: the id of the node that the slot is migrating to, or is
 * imported from; empty if the slot is not open. */
struct sl_open_slots {
    uint64_t owned; /* the shards whose slots the node has; bit S is shard S */
    char migrating[SL_SHARDS_MAX][SL_CLUSTER_ID_SIZE];
    char importing[SL_SHARDS_MAX][SL_CLUSTER_ID_SIZE];
};

/* Reads what the reply to CLUSTER NODES says about the node that answered. 0; errors as above. */
int sl_cluster_open_slots_reply(const struct redisReply *reply, struct sl_open_slots *ret_slots,
                                struct failure *reterr);
