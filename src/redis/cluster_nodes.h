/* src/redis/cluster_nodes.h - the nodes of a Redis Cluster, with those that have no slots, and the
 * slots that are being moved between them.
 *
 * For whoever moves shards; to find one src/redis/cluster_map.h is enough. Plain values, no I/O:
 * CLUSTER SHARDS (Redis 7.0) tells the nodes, and in CLUSTER NODES each tells which of its own
 * slots are open. */
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
    bool is_failed;  /* neither: it is loading, which of a replica may be old news */
    uint64_t shards; /* of a master, those whose slots it has: bit S is shard S */
};

struct sl_cluster_nodes {
    struct sl_cluster_node *at;
    size_t count;
};

void sl_cluster_nodes_done(struct sl_cluster_nodes *nodes);

/* What CLUSTER SHARDS says. `asked` is the node that answered; with `is_tls` the ports are those
 * for TLS. 0: *ret_nodes is the caller's; -EBADMSG: no such answer; -ENOMEM; else as
 * sl_reply_check(). */
int sl_cluster_nodes_reply(const struct redisReply *reply, const struct sl_redis_endpoint *asked,
                           bool is_tls, struct sl_cluster_nodes *ret_nodes, struct failure *reterr);

/* Of one node, by shard: the id of the node that its slot goes to, or comes from; empty where it
 * stays. */
struct sl_open_slots {
    uint64_t owned; /* the shards whose slots it has: bit S is shard S */
    char migrating[SL_SHARDS_MAX][SL_CLUSTER_ID_SIZE];
    char importing[SL_SHARDS_MAX][SL_CLUSTER_ID_SIZE];
};

/* What CLUSTER NODES says of the node that answers. 0; as above. */
int sl_cluster_open_slots_reply(const struct redisReply *reply, struct sl_open_slots *ret_slots,
                                struct failure *reterr);
