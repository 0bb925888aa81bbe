/* src/redis/sentinel.h - calls that find the master with the help of sentinels.
 *
 * For addresses with sentinels (src/redis/redis_address.h). Ask a sentinel where the master is,
 * then ask the Redis there for its role, because during a failover a sentinel may still name the
 * old master. If it is a replica, ask again a little later.
 *
 * A master that is replaced while it is running continues as a master until the sentinels
 * reconfigure it, about ten seconds later; writes to it in this time are lost. Therefore a client
 * that stays connected also subscribes to the sentinels, each of which announces a new master on a
 * channel as soon as it knows. If the subscription and the question for the master are sent
 * together, no announcement is missed.
 *
 * sl_redis_link does all this; callers with connections of their own use these calls. See
 * "Guidelines for Redis clients with support for Redis Sentinel" in the Redis documentation. */
#pragma once

#include <stdbool.h>

#include "base/export.h"
#include "base/failure.h"
#include "src/call/call.h"
#include "src/redis/redis_address.h"

struct redisReply;

/* Asks a sentinel for the address of the master with this name. 0; -ENOMEM. */
SL_EXPORT int sl_sentinel_master_call(struct sl_call *call, const char *master_name,
                                      struct failure *reterr);
/* 0; -ENOENT: it knows no such master; else as sl_reply_check(). */
SL_EXPORT int sl_sentinel_master_reply(const struct redisReply *reply,
                                       struct sl_redis_endpoint *ret_endpoint,
                                       struct failure *reterr);

/* Subscribes to a sentinel's announcements of new masters. 0; -ENOMEM. */
SL_EXPORT int sl_sentinel_listen_call(struct sl_call *call, struct failure *reterr);

struct sl_sentinel_news {
    struct sl_redis_endpoint old_master, new_master;
};

/* Reads a message of the subscription. 0: the master of this name was replaced; -ENOENT: it is
 * about something else, such as another master; else as sl_reply_check(). */
SL_EXPORT int sl_sentinel_news_reply(const struct redisReply *reply, const char *master_name,
                                     struct sl_sentinel_news *ret_news, struct failure *reterr);

/* Asks a Redis whether it is a master. 0; -ENOMEM. */
SL_EXPORT int sl_sentinel_role_call(struct sl_call *call, struct failure *reterr);
/* 0: it is; -EROFS: it is a replica; else as sl_reply_check(). */
SL_EXPORT int sl_sentinel_role_reply(const struct redisReply *reply, struct failure *reterr);
