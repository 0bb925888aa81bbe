/* src/call/reply.h - what Redis answered: an error as a negative errno and a sentence, or words.
 *
 * The parsers of the operations are built on this; an asynchronous caller needs only
 * sl_reply_is_noscript(). Replies are not trusted: one of an unexpected shape is -EBADMSG. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/export.h"
#include "base/failure.h"
#include "base/slice.h"

struct redisReply;

/* The server does not hold the call's script: sl_call_use_source(), and send it again. */
SL_EXPORT bool sl_reply_is_noscript(const struct redisReply *reply);

/* The server has done nothing of the call and may later: it is loading its data, busy with a script
 * that takes long, has too few replicas, or is moving the shard to another node of its cluster. */
SL_EXPORT bool sl_reply_is_not_yet(const struct redisReply *reply);

/* The server has done nothing of the call, for it is a replica: where there was a failover, the
 * call is for another one. */
SL_EXPORT bool sl_reply_is_replica(const struct redisReply *reply);

/* 0: no error. NULL (the connection broke before there was an answer): -EPIPE. An error reply:
 *   -ENODATA   no Sluice database here yet          -EEXIST     login or id taken
 *   -ENOENT    no such user, post, ...             -EPERM      not the asker's own
 *   -EINVAL    nobody can follow themselves         -EALREADY   request id used for something else
 *   -ESTALE    the database has another number of shards or another schema
 *   -EBADMSG   keys that hold something else than Sluice's data
 *   -EAGAIN    see sl_reply_is_not_yet()            -EACCES     password or permission lacking
 *   -EROFS     a replica, or one that cannot        -ENOSPC     Redis is out of memory
 *              keep or copy what it would write
 *   -EDQUOT    as many as may be: follows ...      -ETIME      a task too old to be tried again
 *   -EOPNOTSUPP  a repost of what is not public
 *   -EREMOTE   this is a node of a cluster, and the shard is at another
 *   -ERANGE    ids would be too far ahead of the clock
 *   -EMEDIUMTYPE the database's posts went to another archive
 *   -EIO       anything else */
SL_EXPORT int sl_reply_check(const struct redisReply *reply, struct failure *reterr);
