/* src/redis/redis_link_parts.h - what finding a database (redis_meta.c) needs of a link, and nobody
 * else. */
#pragma once

#include "src/redis/redis_link.h"

struct sl_redis_cluster;

/* NULL: there is one Redis. */
struct sl_redis_cluster *sl_redis_link_cluster(struct sl_redis_link *link);

/* As sl_redis_link_run_many(), but what was not done is not tried again later. */
int sl_redis_link_try_many(struct sl_redis_link *link, struct sl_call *calls, size_t count,
                           struct redisReply **ret_replies, struct failure *reterr);
