/* src/redis/redis_link_parts.h - private functions of the link for redis_meta.c. */
#pragma once

#include "src/redis/redis_link.h"

struct sl_redis_cluster;

/* NULL: not a cluster. */
struct sl_redis_cluster *sl_redis_link_cluster(struct sl_redis_link *link);

/* Like sl_redis_link_run_many(), but does not repeat calls later. */
int sl_redis_link_try_many(struct sl_redis_link *link, struct sl_call *calls, size_t count,
                           struct redisReply **ret_replies, struct failure *reterr);
