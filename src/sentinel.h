/* src/sentinel.h - who is the master? For addresses with sentinels (src/redis_address.h).
 *
 * A sentinel is asked for the place; then the Redis there is asked for its role, because during a
 * failover a sentinel may still name the old one. Whoever finds a replica there asks again, a
 * little later. sl_redis_link does all that; a caller with connections of its own does it with
 * these. */
#pragma once

#include <stdbool.h>

#include "base/export.h"
#include "base/failure.h"
#include "src/call.h"
#include "src/redis_address.h"

struct redisReply;

/* For a sentinel: where is the master of this name? 0; -ENOMEM. */
SL_EXPORT int sl_sentinel_master_call(struct sl_call *call, const char *master_name,
                                      struct failure *reterr);
/* 0; -ENOENT: it knows no such master; else as sl_reply_check(). */
SL_EXPORT int sl_sentinel_master_reply(const struct redisReply *reply,
                                       struct sl_redis_place *ret_place, struct failure *reterr);

/* For a Redis: is it a master? 0; -ENOMEM. */
SL_EXPORT int sl_sentinel_role_call(struct sl_call *call, struct failure *reterr);
/* 0: it is; -EROFS: it is a replica; else as sl_reply_check(). */
SL_EXPORT int sl_sentinel_role_reply(const struct redisReply *reply, struct failure *reterr);
