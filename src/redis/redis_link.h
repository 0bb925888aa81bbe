/* src/redis/redis_link.h - a blocking connection to Redis that sends calls and repeats them when it
 * may.
 *
 * For programs that can wait: the command line, workers, tests, a user's own tools. A link belongs
 * to one thread. It sends a script's SHA1 and the text only when the server asks for it, connects
 * again after the connection broke, and tries again for as long as `retry_ms` allows:
 *
 *   - a call that certainly did not run (no connection, server loading, busy or without the
 *     replicas it needs) always;
 *   - a call whose answer was lost only if it is repeatable: a read, or a write with a request id.
 *     Without one it fails with -EIO and nobody knows whether it was done.
 *
 * In a cluster it has a connection to each node that calls go to, and follows the shards when they
 * move; a call for a shard that is being moved did not run, and is tried again. A node that could
 * not be connected to is left alone for up to a second: calls for its shards fail at once then, as
 * the last one did, unless `retry_ms` lets them wait.
 *
 * With sentinels (src/redis/redis_address.h) it asks them for the master whenever it connects, and
 * when the one it had has become a replica; before each call it looks whether they have told of
 * another since. The program must ignore SIGPIPE. */
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
    uint32_t connect_ms; /* until a connection stands; 0: 5 s */
    uint32_t answer_ms;  /* until an answer comes; 0: 10 s */
    uint32_t retry_ms;   /* how long one call is tried again; 0: not at all */

    uint32_t wait_replicas; /* a write is good when so many replicas have it, too; 0: none */
    uint32_t wait_ms;       /* how long they may take; 0: 1 s */
};

/* Connects once; with sentinels or a cluster, tries for `retry_ms`. 0; -ECONNREFUSED, -EACCES or
 * another errno: *reterr says where and why. */
SL_EXPORT int sl_redis_link_open(const struct sl_redis_address *address,
                                 const struct sl_redis_link_options *options,
                                 struct sl_redis_link **ret_link, struct failure *reterr);
SL_EXPORT void sl_redis_link_close(struct sl_redis_link *link);

/* Sends one call and waits for the reply, which is the caller's to freeReplyObject(). An error
 * reply is a reply: the call's parser tells. 0; -EIO: no answer, *reterr says why; -ETIMEDOUT: a
 * write is done, but too few replicas have it, so that a failover may undo it. With a request id it
 * may be sent again. */
SL_EXPORT int sl_redis_link_run(struct sl_redis_link *link, struct sl_call *call,
                                struct redisReply **ret_reply, struct failure *reterr);

/* The same, but what cannot be done at once is not tried again. */
SL_EXPORT int sl_redis_link_try(struct sl_redis_link *link, struct sl_call *call,
                                struct redisReply **ret_reply, struct failure *reterr);

/* Sends `count` calls in one go and collects all replies; those of a shard run in their order.
 * Either all replies are there, or (-EIO, -ETIMEDOUT) none, and some calls may have run. Hundreds
 * at a time are plenty: what is sent is buffered. */
SL_EXPORT int sl_redis_link_run_many(struct sl_redis_link *link, struct sl_call *calls,
                                     size_t count, struct redisReply **ret_replies,
                                     struct failure *reterr);

/* Finds the database in this Redis, or makes one as `wanted` says (all its shards); no shards: 64
 * in a cluster, else 1. In a cluster shards of a database that is there may be away, or being
 * moved: calls to them tell. Then expects it (sl_redis_link_expect()). 0; as sl_redis_link_run(),
 * sl_meta_call(), sl_meta_reply(); -EBADMSG: a shard of another database; -EREMOTE: the Redis is a
 * node of a cluster, and the address does not say so. */
SL_EXPORT int sl_redis_link_meta(struct sl_redis_link *link, const struct sl_meta *wanted,
                                 struct sl_meta *ret_meta, struct failure *reterr);

/* Looks which database is there, without making one, and without a script: while shards are moved
 * from node to node, too. 0; -ENODATA: there is none; else as sl_redis_link_meta(). */
int sl_redis_link_look(struct sl_redis_link *link, struct sl_meta *ret_meta,
                       struct failure *reterr);

/* From now on the link talks to no node of a cluster that has another database: addresses may be
 * given to others. For links that do not find it themselves. */
SL_EXPORT void sl_redis_link_expect(struct sl_redis_link *link, const struct sl_meta *meta);
