/* gateway/redis/redis_commands.h - ordinary commands to Redis, on the loop.
 *
 * One connection, or in a cluster one to each node that commands go to, made when the first command
 * needs it and made anew when it was lost. Every
 * command is answered exactly once: with Redis's reply, or with none and the reason. A Redis that
 * is slow or gone costs the callers their time limit and nobody else anything.
 *
 * Within its time a command is tried again, after 20 ms at first and a second at most, and at once
 * when a connection stands again:
 *
 *   - when it certainly was not done: there was no connection, or Redis said that it is loading,
 *     busy or without the replicas it needs, or (with sentinels, in a cluster) a replica by now,
 *     that it is moving the shard, or that another node has it;
 *   - when its answer was lost and it is repeatable (src/call/call.h): a read, or a write with a
 *     request id. A write without one is answered with the reason then: it may have been done.
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

/* `reply` is NULL when there is none; then `why` is a sentence. Belongs to the caller of this. */
typedef void (*redis_reply_fn)(void *owner, const redisReply *reply, const char *why);

/* `name` is for CLIENT LIST, and lives as long as this. NULL: out of memory. */
struct redis_commands *redis_commands_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                          const char *name, uint32_t timeout_ms);
/* Commands under way are answered without a reply. The loop must run on to let go of handles. */
void redis_commands_free(struct redis_commands *commands);

/* With sentinels: where the master is from now on; NULL, as at the beginning: nobody knows, and new
 * connections wait. The connection to another one is given up. */
void redis_commands_set_endpoint(struct redis_commands *commands,
                                 const struct sl_redis_endpoint *endpoint);

/* In a cluster: who has which shard. Until it is known commands wait. Not from within an answer. */
void redis_commands_set_map(struct redis_commands *commands, const struct sl_cluster_map *map);
/* The nodes that have some of `shards`, each by which of them it has; how many there are. */
uint32_t redis_commands_nodes(const struct redis_commands *commands, uint64_t shards,
                              uint64_t ret_nodes[static SL_SHARDS_MAX]);
/* A shard whose node is the most likely to answer: there is a connection to it, which owes no
 * answer or gave its last one later than others; without any, one that nobody waits for yet. 0: no
 * node is known. */
uint32_t redis_commands_reached(const struct redis_commands *commands);
/* Called when that is in doubt: a node is away, not ready, or names another one. */
typedef void (*redis_doubt_fn)(void *context);
void redis_commands_set_doubt(struct redis_commands *commands, redis_doubt_fn tell, void *context);

/* Somebody has just reached Redis: what waits for a connection, or for its next try, waits no more.
 */
void redis_commands_try_now(struct redis_commands *commands);

/* Sends the call, whose memory is taken over even on failure. A script that Redis does not know is
 * sent again with its text. 0: `done` will be called, later; -ENOMEM (also: Redis does not read,
 * and 64 MiB wait for it), -ECANCELED (being freed): it will not. */
int redis_commands_run_take(struct redis_commands *commands, struct sl_call *call,
                            redis_reply_fn done, void *owner);
