/* src/redis/cluster_map.h - which node of a Redis Cluster holds each shard.
 *
 * All keys of a shard have one hash tag and therefore one slot, so the map knows the nodes of 64
 * slots instead of 16,384. It is filled from CLUSTER SLOTS, and corrected when a node answers
 * MOVED. Plain values without I/O. Answers of servers are checked; only addresses that one can
 * connect to are stored. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/export.h"
#include "base/failure.h"
#include "base/slice.h"
#include "src/call/call.h"
#include "src/model/id.h"
#include "src/redis/redis_address.h"

struct redisReply;

enum { SL_CLUSTER_SLOTS = 16384 };

struct sl_cluster_map {
    struct sl_redis_endpoint masters[SL_SHARDS_MAX]; /* by shard; an empty host: not known */
};

/* The slot of the shard's keys. */
SL_EXPORT uint32_t sl_cluster_slot(uint32_t shard);

/* Asks a node for the owners of all slots. 0; -ENOMEM. */
SL_EXPORT int sl_cluster_slots_call(struct sl_call *call, struct failure *reterr);
/* `asked` is the node that answered: a node that does not know its own address means itself. Slots
 * without a master, or with one of unknown address, are unknown in *ret_map. 0; -ENOTSUP: this
 * Redis is not a cluster; -EBADMSG: not a valid answer; else as sl_reply_check(). */
SL_EXPORT int sl_cluster_slots_reply(const struct redisReply *reply,
                                     const struct sl_redis_endpoint *asked,
                                     struct sl_cluster_map *ret_map, struct failure *reterr);

/* Reads a host and port as a server names a node. `asked` as above. 0; -ENOENT: the server has no
 * name for it; -EBADMSG. */
int sl_cluster_read_endpoint(struct sl_slice host, uint64_t port,
                             const struct sl_redis_endpoint *asked,
                             struct sl_redis_endpoint *ret_endpoint);

/* Asks a Redis that is configured as a single one whether it is a node of a cluster. Uses HELLO,
 * whose answer contains the mode of the server and needs no permission besides connecting. 0;
 * -ENOMEM. */
SL_EXPORT int sl_cluster_node_call(struct sl_call *call, struct failure *reterr);
/* 0: it is not, or does not say; -EREMOTE: it is. */
SL_EXPORT int sl_cluster_node_reply(const struct redisReply *reply, struct failure *reterr);

/* The shards whose masters differ, or are known to one map only. Bit S is shard S. */
SL_EXPORT uint64_t sl_cluster_map_difference(const struct sl_cluster_map *a,
                                             const struct sl_cluster_map *b);

/* The shards of this master. Bit S is shard S. */
SL_EXPORT uint64_t sl_cluster_map_shards_of(const struct sl_cluster_map *map,
                                            const struct sl_redis_endpoint *master);

/* Whether the masters of the first `shards` shards are known. 0: of all possible shards. */
SL_EXPORT bool sl_cluster_map_is_full(const struct sl_cluster_map *map, uint32_t shards);
/* Copies from `other` what is not known in *map. */
SL_EXPORT void sl_cluster_map_fill(struct sl_cluster_map *map, const struct sl_cluster_map *other);

struct sl_cluster_redirect {
    bool is_ask; /* for this command only, after ASKING; never for a script (docs/core.md) */
    uint32_t slot;
    struct sl_redis_endpoint endpoint;
};

/* Reads a redirection to another node. 0; -ENOENT: the reply is not a redirection; -EBADMSG: it has
 * no valid address. */
SL_EXPORT int sl_cluster_redirect_reply(const struct redisReply *reply,
                                        const struct sl_redis_endpoint *asked,
                                        struct sl_cluster_redirect *ret_redirect);
