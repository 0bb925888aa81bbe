/* src/redis/redis_connection.h - a blocking connection to a Redis or a sentinel: commands out,
 * replies in.
 *
 * The socket is our own, hiredis parses what comes: the hiredis of Debian 12 has no TLS, and this
 * way TCP, unix sockets and TLS take one path. After a failure nothing works but closing. The
 * program must ignore SIGPIPE. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/failure.h"

struct redisReply;
struct sl_redis_connection;
struct sl_redis_tls;

/* Connects by `deadline_ms` (clock_monotonic_ms()), over `tls` unless that is NULL, which belongs
 * to the connection from here on. Later each wait for Redis may take `answer_ms`. 0; -ECONNREFUSED:
 * *reterr says why; as sl_redis_tls_shake_hands(); -ENOMEM. */
int sl_redis_connection_open_take(const struct sockaddr *address, socklen_t size,
                                  struct sl_redis_tls *tls, uint64_t deadline_ms,
                                  uint32_t answer_ms, struct sl_redis_connection **ret_connection,
                                  struct failure *reterr);
void sl_redis_connection_close(struct sl_redis_connection *connection);

/* Puts a command behind those that are to be sent. `argvlen` NULL: the arguments are strings. 0;
 * -ENOMEM: it will not be sent. */
int sl_redis_connection_append(struct sl_redis_connection *connection, int argc,
                               const char *const *argv, const size_t *argvlen,
                               struct failure *reterr);
/* Sends them. 0; -EIO: *reterr says why; as sl_redis_tls_open(). */
int sl_redis_connection_flush(struct sl_redis_connection *connection, struct failure *reterr);
/* The next reply, which is the caller's to freeReplyObject(); what is to be sent leaves before.
 * 0; -EIO: *reterr says why; -ENOMEM; as sl_redis_tls_open(). */
int sl_redis_connection_read(struct sl_redis_connection *connection, struct redisReply **ret_reply,
                             struct failure *reterr);
/* The same without waiting, and without sending: *ret_reply is NULL when there is none yet. */
int sl_redis_connection_poll(struct sl_redis_connection *connection, struct redisReply **ret_reply,
                             struct failure *reterr);

/* How long Redis may take from now on. */
void sl_redis_connection_set_answer_ms(struct sl_redis_connection *connection, uint32_t answer_ms);
/* A peer that vanishes without a word is noticed within half a minute. */
void sl_redis_connection_keep_alive(struct sl_redis_connection *connection);
