/* src/redis/redis_connection.h - a blocking connection to a Redis or a sentinel.
 *
 * The socket is our own, and hiredis only parses the replies: hiredis of Debian 12 has no TLS, and
 * in this way TCP, Unix sockets and TLS share one path. After a failure the connection can only be
 * closed. The program must ignore SIGPIPE. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/failure.h"

struct redisReply;
struct sl_redis_connection;
struct sl_redis_tls;

/* Connects by `deadline_ms` (clock_monotonic_ms()), over `tls` unless it is NULL; takes ownership
 * of `tls`. After that, each wait for Redis may take `answer_ms`. 0; -ECONNREFUSED: *reterr says
 * why; -ENOMEM; or as sl_redis_tls_shake_hands(). */
int sl_redis_connection_open_take(const struct sockaddr *address, socklen_t size,
                                  struct sl_redis_tls *tls, uint64_t deadline_ms,
                                  uint32_t answer_ms, struct sl_redis_connection **ret_connection,
                                  struct failure *reterr);
void sl_redis_connection_close(struct sl_redis_connection *connection);

/* Queues a command. `argvlen` NULL: the arguments are strings. 0; -ENOMEM: not queued. */
int sl_redis_connection_append(struct sl_redis_connection *connection, int argc,
                               const char *const *argv, const size_t *argvlen,
                               struct failure *reterr);
/* Sends the queued commands. 0; -EIO: *reterr says why; or as sl_redis_tls_open(). */
int sl_redis_connection_flush(struct sl_redis_connection *connection, struct failure *reterr);
/* Sends the queued commands and waits for the next reply, which the caller frees with
 * freeReplyObject(). 0; -EIO: *reterr says why; -ENOMEM; or as sl_redis_tls_open(). */
int sl_redis_connection_read(struct sl_redis_connection *connection, struct redisReply **ret_reply,
                             struct failure *reterr);
/* Like sl_redis_connection_read(), but neither sends nor waits: *ret_reply is NULL if there is no
 * reply yet. */
int sl_redis_connection_poll(struct sl_redis_connection *connection, struct redisReply **ret_reply,
                             struct failure *reterr);

/* Changes how long each wait for Redis may take. */
void sl_redis_connection_set_answer_ms(struct sl_redis_connection *connection, uint32_t answer_ms);
/* Enables keep-alives, so that a dead peer is detected within half a minute. */
void sl_redis_connection_keep_alive(struct sl_redis_connection *connection);
