/* src/redis/redis_tls.h - the client side of TLS to Redis, without I/O.
 *
 * It works on bytes in memory and never blocks, so that it serves both blocking connections and
 * those of an event loop. Received bytes are fed, bytes to be sent are taken: call
 * sl_redis_tls_shake_hands() until it is done, then sl_redis_tls_seal() and sl_redis_tls_open();
 * after each call, sl_redis_tls_take() and send.
 *
 * Requires TLS 1.2 or newer. The server's certificate must be signed by an authority of the address
 * (by default one that the machine trusts), and contain the host, as a name or an IP address. The
 * files are read again for each connection, so that a renewed certificate is used. An error is
 * final for the connection. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/failure.h"
#include "base/slice.h"
#include "src/redis/redis_address.h"

struct sl_redis_tls;

/* Checks whether the files of an address can be used; 0 for an address without TLS. 0; -EINVAL:
 * *reterr says which and why; -ENOMEM. */
int sl_redis_tls_check(const struct sl_redis_address *address, struct failure *reterr);

/* For a connection to `host`, which belongs to the address. 0; errors as sl_redis_tls_check(). */
int sl_redis_tls_new(const struct sl_redis_address *address, const char *host,
                     struct sl_redis_tls **ret_tls, struct failure *reterr);
void sl_redis_tls_free(struct sl_redis_tls *tls);

/* Takes bytes received from the server. 0; -EPROTO: not TLS; -ENOMEM. */
int sl_redis_tls_feed(struct sl_redis_tls *tls, struct sl_slice bytes, struct failure *reterr);

/* Advances the handshake. 1: done; 0: more bytes of the server are needed; -EACCES: one side does
 * not trust the other; -EPROTO; -ENOMEM. */
int sl_redis_tls_shake_hands(struct sl_redis_tls *tls, struct failure *reterr);

/* Reports a handshake that timed out, with a message that depends on what the server has sent.
 * Returns -ECONNREFUSED. */
int sl_redis_tls_time_out(const struct sl_redis_tls *tls, struct failure *reterr);

/* Encrypts bytes for the server. 0; -EPROTO; -ENOMEM. */
int sl_redis_tls_seal(struct sl_redis_tls *tls, struct sl_slice bytes, struct failure *reterr);

/* Decrypts received bytes into `room`. Returns their number; 0: no more; -EACCES, -EPROTO;
 * -ECONNRESET: the server has closed the connection; -ENOMEM. */
ssize_t sl_redis_tls_open(struct sl_redis_tls *tls, char *room, size_t room_size,
                          struct failure *reterr);

/* Moves the bytes to be sent to the end of `out`. Check out->failed afterwards. */
void sl_redis_tls_take(struct sl_redis_tls *tls, struct buffer *out);
