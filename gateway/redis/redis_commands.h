/* gateway/redis/redis_commands.h - sends ordinary commands to Redis, on the loop.
 *
 * There is one connection, or in a cluster one to each node that commands go to. It is made when
 * the first command needs it, and again after it was lost. Every command is answered exactly once:
 * with Redis's reply, or with none and the reason. A Redis that is slow or down costs the callers
 * their time limit, and affects nobody else.
 *
 * Within its time limit a command is tried again, after 20 ms at first and a second at most, and at
 * once when a connection is available again:
 *
 *   - if it was certainly not executed: there was no connection, or Redis answered that it is
 *     loading, busy or without the required replicas, or (with sentinels, in a cluster) a replica,
 *     that it is moving the shard, or that another node has it;
 *   - if its answer was lost and it is repeatable (src/call/call.h): a read, or a write with a
 *     request id. A write without one is answered with the reason: it may have been executed.
 *
 * Commands that are tried again may be overtaken by others. */
#pragma once

#include <hiredis/hiredis.h>
#include <stdint.h>
#include <uv.h>

#include "src/call/call.h"
#include "src/model/id.h"
#include "src/redis/cluster_map.h"
#include "src/redis/redis_address.h"

struct redis_commands;

/* `reply` is NULL if there is none, and `why` is a message. Both are valid during the call. */
typedef void (*redis_reply_fn)(void *owner, const redisReply *reply, const char *why);

/* `name` is for CLIENT LIST, and is borrowed. NULL: out of memory. */
struct redis_commands *redis_commands_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                          const char *name, uint32_t timeout_ms);
/* Outstanding commands are answered without a reply. The loop must run on to close the handles. */
void redis_commands_free(struct redis_commands *commands);

/* With sentinels: sets the address of the master. NULL, as at the beginning: unknown, and new
 * connections wait. The connection to another address is closed. */
void redis_commands_set_endpoint(struct redis_commands *commands,
                                 const struct sl_redis_endpoint *endpoint);

/* In a cluster: sets which node has which shard. Until then commands wait. Must not be called from
 * a callback of a command. */
void redis_commands_set_map(struct redis_commands *commands, const struct sl_cluster_map *map);
/* Fills the nodes that have some of `shards`, each as a bit mask of these shards. Returns their
 * number. */
uint32_t redis_commands_nodes(const struct redis_commands *commands, uint64_t shards,
                              uint64_t ret_nodes[static SL_SHARDS_MAX]);
/* The shard whose node is most likely to answer: one with a connection and no outstanding answer,
 * or with the most recent answer; without any connection, one for which no command waits. 0: no
 * node is known. */
uint32_t redis_commands_reached(const struct redis_commands *commands);
/* Called when the map or master becomes doubtful: a node is down, not ready, or names another
 * one. */
typedef void (*redis_doubt_fn)(void *context);
void redis_commands_set_doubt(struct redis_commands *commands, redis_doubt_fn tell, void *context);

/* Redis has just been reached by somebody else: retries all waiting commands at once. */
void redis_commands_try_now(struct redis_commands *commands);

/* Sends the call, and takes ownership of its memory even on failure. If Redis does not know the
 * script, it is sent again with its text. 0: `done` will be called, later; -ENOMEM (also if Redis
 * does not read and 64 MiB are buffered), -ECANCELED (being freed): it will not. */
int redis_commands_run_take(struct redis_commands *commands, struct sl_call *call,
                            redis_reply_fn done, void *owner);
