/* src/redis/redis_dial.h - opening a blocking connection: to Redis, or to a sentinel. Where nobody
 * accepts, or the connection breaks, the functions fail with -ECONNREFUSED. */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "src/redis/redis_address.h"

struct redisReply;
struct sl_redis_connection;

/* To the unix socket of `address`, or where it has none to the first address of `endpoint` that
 * accepts; over TLS when `address` says so. 0: *ret_connection is the caller's to close; as
 * sl_redis_connection_open_take(), sl_redis_tls_new(). */
int sl_redis_dial(const struct sl_redis_address *address, const struct sl_redis_endpoint *endpoint,
                  uint32_t connect_ms, uint32_t answer_ms,
                  struct sl_redis_connection **ret_connection, struct failure *reterr);

/* Sends a command of the greeting. 0: *ret_reply is no error, and the caller's. */
int sl_redis_ask(struct sl_redis_connection *connection, int argc, const char *const *argv,
                 const size_t *argvlen, struct redisReply **ret_reply, struct failure *reterr);

/* The same where only success counts. */
int sl_redis_greet(struct sl_redis_connection *connection, int argc, const char *const *argv,
                   struct failure *reterr);

/* 0 where there is nothing to log in with, too. */
int sl_redis_log_in(struct sl_redis_connection *connection, const struct sl_redis_login *login,
                    struct failure *reterr);
