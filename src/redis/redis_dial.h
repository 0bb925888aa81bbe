/* src/redis/redis_dial.h - opening a blocking connection: to Redis, or to a sentinel. */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "src/redis/redis_address.h"

struct redisContext;
struct redisReply;

/* To the unix socket at `path`, or where that is NULL to the first address of `endpoint` that
 * accepts. 0: *ret_redis is the caller's to redisFree(). */
int sl_redis_dial(const char *path, const struct sl_redis_endpoint *endpoint, uint32_t connect_ms,
                  uint32_t answer_ms, struct redisContext **ret_redis, struct failure *reterr);

/* Sends a command of the greeting. 0: *ret_reply is no error, and the caller's. */
int sl_redis_ask(struct redisContext *redis, int argc, const char **argv, const size_t *argvlen,
                 struct redisReply **ret_reply, struct failure *reterr);

/* The same where only success counts. */
int sl_redis_greet(struct redisContext *redis, int argc, const char **argv, struct failure *reterr);

/* 0 where there is nothing to log in with, too. */
int sl_redis_log_in(struct redisContext *redis, const struct sl_redis_login *login,
                    struct failure *reterr);
