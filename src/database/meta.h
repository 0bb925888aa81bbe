/* src/database/meta.h - finding or making a database: its identity, its number of shards.
 *
 * Every shard has the same `meta`; shard 0's is the one that counts. A program that finds a Redis
 * asks shard 0 first (sl_meta_call() with shard 0): that makes a database where there is none, or
 * reads the one that is there. With more than one shard it then does the same for shards 1 to
 * shards - 1 with what shard 0 said, so that a creation which broke off is completed. What may be
 * set in it is in src/database/settings.h. */
#pragma once

#include <stdint.h>

#include "base/export.h"
#include "base/failure.h"
#include "src/call/call.h"
#include "src/model/database.h"

struct redisReply;

/* Reads the meta of `shard`, making it as `wanted` says (database_id, shards) where there is none.
 * With wanted->is_clustered, for callers who know the Redis to be a cluster, the shard is one of a
 * cluster from then on, for everybody.
 * 0; -EINVAL: wanted->shards out of range; -ENOMEM. */
SL_EXPORT int sl_meta_call(struct sl_call *call, uint32_t shard, const struct sl_meta *wanted,
                           struct failure *reterr);
/* 0; -ESTALE: a schema, or a form (forms.h), that this program does not know; else as
 * sl_reply_check(). */
SL_EXPORT int sl_meta_reply(const struct redisReply *reply, struct sl_meta *ret_meta,
                            struct failure *reterr);

/* Reads what meta there is by a plain command, which is answered while the shard is moved to
 * another node of a cluster, too, and makes none. 0; -ENOMEM. */
int sl_meta_look_call(struct sl_call *call, uint32_t shard, struct failure *reterr);
/* 0; -ENODATA: there is none; else as sl_meta_reply(). */
int sl_meta_look_reply(const struct redisReply *reply, struct sl_meta *ret_meta,
                       struct failure *reterr);

/* What to ask shard 0 for: a random id and `shards`; 0 is for sl_redis_link_meta() to decide. */
SL_EXPORT struct sl_meta sl_meta_wanted(uint32_t shards);

/* 0 when the meta of another shard belongs to the same database; -EBADMSG. */
SL_EXPORT int sl_meta_check_same(const struct sl_meta *meta, const struct sl_meta *other,
                                 struct failure *reterr);
