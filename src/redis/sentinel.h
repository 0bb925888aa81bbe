/* src/redis/sentinel.h - who is the master? For addresses with sentinels
 * (src/redis/redis_address.h).
 *
 * A sentinel is asked where the master is; then the Redis there is asked for its role, because
 * during a failover a sentinel may still name the old one. Whoever finds a replica there asks
 * again, a little later.
 *
 * A master that is replaced while it lives goes on as one until the sentinels get round to it, some
 * ten seconds later; what it is given meanwhile is lost. So whoever stays connected listens at the
 * sentinels, too, each of which says so (on a channel of its own) as soon as it knows another.
 * Asked for it and told to speak in one go, a sentinel leaves nothing out in between.
 *
 * sl_redis_link does all that; a caller with connections of its own does it with these. Described
 * in Redis's "Guidelines for Redis clients with support for Redis Sentinel". */
#pragma once

#include <stdbool.h>

#include "base/export.h"
#include "base/failure.h"
#include "src/call/call.h"
#include "src/redis/redis_address.h"

struct redisReply;

/* For a sentinel: where is the master of this name? 0; -ENOMEM. */
SL_EXPORT int sl_sentinel_master_call(struct sl_call *call, const char *master_name,
                                      struct failure *reterr);
/* 0; -ENOENT: it knows no such master; else as sl_reply_check(). */
SL_EXPORT int sl_sentinel_master_reply(const struct redisReply *reply,
                                       struct sl_redis_endpoint *ret_endpoint,
                                       struct failure *reterr);

/* For a sentinel: say from now on when a master is replaced. 0; -ENOMEM. */
SL_EXPORT int sl_sentinel_listen_call(struct sl_call *call, struct failure *reterr);

struct sl_sentinel_news {
    struct sl_redis_endpoint old_master, new_master;
};

/* What a sentinel that was told to speak says. 0: the master of this name was replaced; -ENOENT: it
 * is about something else, such as another master; else as sl_reply_check(). */
SL_EXPORT int sl_sentinel_news_reply(const struct redisReply *reply, const char *master_name,
                                     struct sl_sentinel_news *ret_news, struct failure *reterr);

/* For a Redis: is it a master? 0; -ENOMEM. */
SL_EXPORT int sl_sentinel_role_call(struct sl_call *call, struct failure *reterr);
/* 0: it is; -EROFS: it is a replica; else as sl_reply_check(). */
SL_EXPORT int sl_sentinel_role_reply(const struct redisReply *reply, struct failure *reterr);
