/* src/call/reply.h - the common part of all replies of Redis: errors as a negative errno and a
 * message.
 *
 * The parsers of the operations are built on this; an asynchronous caller only needs
 * sl_reply_is_noscript(). Replies are not trusted: one with an unexpected structure is -EBADMSG. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/export.h"
#include "base/failure.h"
#include "base/slice.h"

struct redisReply;

/* The server does not have the call's script: call sl_call_use_source() and send the call again. */
SL_EXPORT bool sl_reply_is_noscript(const struct redisReply *reply);

/* The server has not executed the call but may later: it is loading its data, busy with a long
 * script, has too few replicas, or is moving the shard to another node of its cluster. */
SL_EXPORT bool sl_reply_is_not_yet(const struct redisReply *reply);

/* The server has not executed the call because it is a replica. After a failover another server
 * must be asked. */
SL_EXPORT bool sl_reply_is_replica(const struct redisReply *reply);

/* 0: no error. NULL (the connection broke before the answer): -EPIPE. For an error reply:
 *
 *     -ENODATA      no Sluice database here yet
 *     -EEXIST       the login or id is taken
 *     -ENOENT       no such user, post, ...
 *     -EPERM        belongs to another user
 *     -EINVAL       users cannot follow themselves
 *     -EALREADY     the request id was used for another request
 *     -ESTALE       the database has another number of shards or another schema
 *     -EBADMSG      keys contain something that is not Sluice's data
 *     -EAGAIN       see sl_reply_is_not_yet()
 *     -EACCES       password or permission missing
 *     -EROFS        a replica, or a server that cannot persist or replicate writes
 *     -ENOSPC       Redis is out of memory
 *     -EDQUOT       a limit is reached, such as that of follows
 *     -ETIME        a task is too old to be tried again
 *     -EOPNOTSUPP   a repost of a post that is not public
 *     -EREMOTE      this is a node of a cluster, and the shard is at another node
 *     -ERANGE       ids would be too far ahead of the clock
 *     -EMEDIUMTYPE  the database's posts went to another archive
 *     -EIO          anything else */
SL_EXPORT int sl_reply_check(const struct redisReply *reply, struct failure *reterr);
