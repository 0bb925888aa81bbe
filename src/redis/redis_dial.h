/* src/redis/redis_dial.h - opens blocking connections to Redis or a sentinel.
 *
 * The functions fail with -ECONNREFUSED if nobody accepts or the connection breaks. */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "src/redis/redis_address.h"

struct redisReply;
struct sl_redis_connection;

/* Connects to the Unix socket of `address`, or without one to the first address of `endpoint` that
 * accepts; over TLS if `address` says so. The caller closes *ret_connection. 0; errors as
 * sl_redis_connection_open_take() and sl_redis_tls_new(). */
int sl_redis_dial(const struct sl_redis_address *address, const struct sl_redis_endpoint *endpoint,
                  uint32_t connect_ms, uint32_t answer_ms,
                  struct sl_redis_connection **ret_connection, struct failure *reterr);

/* Sends a command of the handshake. 0: *ret_reply is not an error; the caller frees it. */
int sl_redis_ask(struct sl_redis_connection *connection, int argc, const char *const *argv,
                 const size_t *argvlen, struct redisReply **ret_reply, struct failure *reterr);

/* Like sl_redis_ask(), if only success matters. */
int sl_redis_greet(struct sl_redis_connection *connection, int argc, const char *const *argv,
                   struct failure *reterr);

/* Logs in; 0 also if there are no credentials. */
int sl_redis_log_in(struct sl_redis_connection *connection, const struct sl_redis_login *login,
                    struct failure *reterr);
