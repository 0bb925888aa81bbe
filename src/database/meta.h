/* src/database/meta.h - finds or creates a database: its identity and its number of shards.
 *
 * Every shard has the same `meta`; that of shard 0 is authoritative. A program first calls
 * sl_meta_call() with shard 0, which reads the existing database or creates one. If there are
 * several shards it then does the same for shards 1 to shards - 1 with the meta of shard 0, to
 * complete a creation that was interrupted. The settings in `meta` are described in
 * src/database/settings.h. */
#pragma once

#include <stdint.h>

#include "base/export.h"
#include "base/failure.h"
#include "src/call/call.h"
#include "src/model/database.h"

struct redisReply;

/* Reads the meta of `shard`, or creates it as `wanted` says (database_id, shards) if there is none.
 * wanted->is_clustered, for callers that know the Redis to be a cluster, marks the shard
 * permanently as part of a cluster.
 *
 * 0; -EINVAL: wanted->shards is out of range; -ENOMEM. */
SL_EXPORT int sl_meta_call(struct sl_call *call, uint32_t shard, const struct sl_meta *wanted,
                           struct failure *reterr);
/* 0; -ESTALE: a schema or form (forms.h) that this program does not know; else as
 * sl_reply_check(). */
SL_EXPORT int sl_meta_reply(const struct redisReply *reply, struct sl_meta *ret_meta,
                            struct failure *reterr);

/* Reads an existing meta with a plain command, which is also answered while the shard is moved to
 * another node of a cluster. Creates nothing. 0; -ENOMEM. */
int sl_meta_look_call(struct sl_call *call, uint32_t shard, struct failure *reterr);
/* 0; -ENODATA: there is none; else as sl_meta_reply(). */
int sl_meta_look_reply(const struct redisReply *reply, struct sl_meta *ret_meta,
                       struct failure *reterr);

/* The `wanted` for shard 0: a random id, and `shards`. With 0 shards, sl_redis_link_meta()
 * decides. */
SL_EXPORT struct sl_meta sl_meta_wanted(uint32_t shards);

/* 0 if the meta of another shard belongs to the same database; else -EBADMSG. */
SL_EXPORT int sl_meta_check_same(const struct sl_meta *meta, const struct sl_meta *other,
                                 struct failure *reterr);
