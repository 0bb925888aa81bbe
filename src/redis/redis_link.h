/* src/redis/redis_link.h - a blocking connection to Redis that repeats calls when that is safe.
 *
 * For programs that can wait: the command line, workers, tests, your own tools. A link belongs to
 * one thread. It sends a script's SHA1, and its text only if the server asks for it. It reconnects
 * when the connection breaks, and repeats calls for up to `retry_ms`:
 *
 * - a call that was certainly not executed (no connection; server loading, busy or without the
 *   required replicas): always;
 * - a call whose answer was lost: only if it is repeatable, that is a read, or a write with a
 *   request id. Any other call fails with -EIO, and whether it was executed is unknown.
 *
 * In a cluster the link connects to each node that it sends calls to, and follows shards that move.
 * A call to a shard that is being moved was not executed, and is repeated. After a failed attempt
 * to connect to a node, the link does not try again for up to a second; meanwhile calls to its
 * shards fail at once with the same error, unless `retry_ms` lets them wait.
 *
 * With sentinels (src/redis/redis_address.h) the link asks for the master whenever it connects, and
 * when its master has become a replica. Before each call it checks whether the sentinels have
 * announced another master. The program must ignore SIGPIPE. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/export.h"
#include "base/failure.h"
#include "src/call/call.h"
#include "src/database/meta.h"
#include "src/redis/redis_address.h"

struct redisReply;
struct sl_redis_link;

struct sl_redis_link_options {
    uint32_t connect_ms; /* to establish a connection; 0: 5 s */
    uint32_t answer_ms;  /* to wait for an answer; 0: 10 s */
    uint32_t retry_ms;   /* how long a call is repeated; 0: not at all */

    uint32_t wait_replicas; /* a write succeeds when this many replicas have it; 0: none */
    uint32_t wait_ms;       /* how long the replicas may take; 0: 1 s */
};

/* Connects once; with sentinels or a cluster, tries for `retry_ms`. 0; -ECONNREFUSED, -EACCES or
 * another errno: *reterr says where and why. */
SL_EXPORT int sl_redis_link_open(const struct sl_redis_address *address,
                                 const struct sl_redis_link_options *options,
                                 struct sl_redis_link **ret_link, struct failure *reterr);
SL_EXPORT void sl_redis_link_close(struct sl_redis_link *link);

/* Sends one call and waits for the reply, which the caller frees with freeReplyObject(). An error
 * reply is a reply: the call's parser reports it. 0; -EIO: no answer, *reterr says why; -ETIMEDOUT:
 * a write was executed, but too few replicas have it, so a failover may undo it. With a request id
 * it may be sent again. */
SL_EXPORT int sl_redis_link_run(struct sl_redis_link *link, struct sl_call *call,
                                struct redisReply **ret_reply, struct failure *reterr);

/* Like sl_redis_link_run(), but does not repeat the call. */
SL_EXPORT int sl_redis_link_try(struct sl_redis_link *link, struct sl_call *call,
                                struct redisReply **ret_reply, struct failure *reterr);

/* Sends `count` calls at once and waits for all replies. Calls to the same shard are executed in
 * order. 0: all replies are there; -EIO, -ETIMEDOUT: none, though some calls may have been
 * executed. Do not send more than a few hundred calls at a time, because they are buffered. */
SL_EXPORT int sl_redis_link_run_many(struct sl_redis_link *link, struct sl_call *calls,
                                     size_t count, struct redisReply **ret_replies,
                                     struct failure *reterr);

/* Finds the database in this Redis, or creates one with all its shards as `wanted` says; with 0
 * shards, it gets 64 in a cluster, else 1. Shards of an existing database in a cluster may be down
 * or moving; calls to them report it. Then calls sl_redis_link_expect(). 0; -EBADMSG: a shard of
 * another database; -EREMOTE: the Redis is a node of a cluster, but the address does not say so;
 * else as sl_redis_link_run(), sl_meta_call() and sl_meta_reply(). */
SL_EXPORT int sl_redis_link_meta(struct sl_redis_link *link, const struct sl_meta *wanted,
                                 struct sl_meta *ret_meta, struct failure *reterr);

/* Finds an existing database without a script, so that it also works while shards are moved between
 * nodes. 0; -ENODATA: there is none; else as sl_redis_link_meta(). */
int sl_redis_link_look(struct sl_redis_link *link, struct sl_meta *ret_meta,
                       struct failure *reterr);

/* From now on the link uses no node of a cluster that holds another database, because addresses can
 * be reassigned. For links that do not call sl_redis_link_meta(). */
SL_EXPORT void sl_redis_link_expect(struct sl_redis_link *link, const struct sl_meta *meta);
