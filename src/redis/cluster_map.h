/* src/redis/cluster_map.h - which node of a Redis Cluster has a shard?
 *
 * A shard is one slot, since all its keys have one hash tag; so the map knows the nodes of 64
 * slots, not of 16,384. It is filled from CLUSTER SLOTS, and mended by what a node answers for a
 * slot that it does not have (MOVED). Plain values, no I/O: what a server says is checked, and kept
 * only where it names a place one can connect to. */
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

/* The slot that the keys of a shard are in. */
SL_EXPORT uint32_t sl_cluster_slot(uint32_t shard);

/* For a node: who has which slots? 0; -ENOMEM. */
SL_EXPORT int sl_cluster_slots_call(struct sl_call *call, struct failure *reterr);
/* `asked` is the node that answered: one that does not know its own address means itself. Slots
 * without a master, or with one of unknown address, are not known in *ret_map. 0; -ENOTSUP: this
 * Redis is no cluster; -EBADMSG: no such answer; else as sl_reply_check(). */
SL_EXPORT int sl_cluster_slots_reply(const struct redisReply *reply,
                                     const struct sl_redis_endpoint *asked,
                                     struct sl_cluster_map *ret_map, struct failure *reterr);

/* How a server names a node, and the port of it. `asked` as above. 0; -ENOENT: the server has no
 * name for it; -EBADMSG. */
int sl_cluster_read_endpoint(struct sl_slice host, uint64_t port,
                             const struct sl_redis_endpoint *asked,
                             struct sl_redis_endpoint *ret_endpoint);

/* For a Redis that is named as one alone: is it a node of a cluster? HELLO, whose answer tells the
 * mode of the server and needs no right but those of a connection. 0; -ENOMEM. */
SL_EXPORT int sl_cluster_node_call(struct sl_call *call, struct failure *reterr);
/* 0: it is none, or does not say; -EREMOTE. */
SL_EXPORT int sl_cluster_node_reply(const struct redisReply *reply, struct failure *reterr);

/* The shards whose masters differ, or are known to one only: bit S is shard S. */
SL_EXPORT uint64_t sl_cluster_map_difference(const struct sl_cluster_map *a,
                                             const struct sl_cluster_map *b);

/* The shards that this master has, in the same way. */
SL_EXPORT uint64_t sl_cluster_map_shards_of(const struct sl_cluster_map *map,
                                            const struct sl_redis_endpoint *master);

/* Are the masters of the first so many shards known? 0: of all that there can be. */
SL_EXPORT bool sl_cluster_map_is_full(const struct sl_cluster_map *map, uint32_t shards);
/* What is not known in *map becomes what it is in `other`. */
SL_EXPORT void sl_cluster_map_fill(struct sl_cluster_map *map, const struct sl_cluster_map *other);

struct sl_cluster_redirect {
    bool is_ask; /* for this command only, behind ASKING; never for a script (docs/core.md) */
    uint32_t slot;
    struct sl_redis_endpoint endpoint;
};

/* Does the reply send the command to another node? 0: it does; -ENOENT: it is no redirection;
 * -EBADMSG: to no place that there is. */
SL_EXPORT int sl_cluster_redirect_reply(const struct redisReply *reply,
                                        const struct sl_redis_endpoint *asked,
                                        struct sl_cluster_redirect *ret_redirect);
