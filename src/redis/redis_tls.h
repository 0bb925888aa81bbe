/* src/redis/redis_tls.h - our side of TLS to Redis: bytes in, bytes out.
 *
 * It knows no socket and waits for nothing, so that it serves connections that block and those of
 * a loop. What the peer has sent is fed, what is for the peer is taken:
 *
 *     sl_redis_tls_shake_hands() until it is done, then sl_redis_tls_seal() and
 * sl_redis_tls_open(); after each of them, sl_redis_tls_take() and send.
 *
 * TLS 1.2 or newer. The peer's certificate must be signed by an authority of the address (or by one
 * that the machine trusts) and hold the host, name or IP address. The files are read anew for each
 * connection: a certificate that was renewed is used from then on. All functions fail for good. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/failure.h"
#include "base/slice.h"
#include "src/redis/redis_address.h"

struct sl_redis_tls;

/* Whether the files of an address can be used; good for one without TLS. 0; -EINVAL: *reterr says
 * which and why; -ENOMEM. */
int sl_redis_tls_check(const struct sl_redis_address *address, struct failure *reterr);

/* For a connection to `host`, one of the address. 0; as sl_redis_tls_check(). */
int sl_redis_tls_new(const struct sl_redis_address *address, const char *host,
                     struct sl_redis_tls **ret_tls, struct failure *reterr);
void sl_redis_tls_free(struct sl_redis_tls *tls);

/* What has come from the peer. 0; -EPROTO: that is no TLS; -ENOMEM. */
int sl_redis_tls_feed(struct sl_redis_tls *tls, struct sl_slice bytes, struct failure *reterr);

/* 1: done; 0: the peer must say more first; -EACCES: one of the two does not trust the other;
 * -EPROTO; -ENOMEM. */
int sl_redis_tls_shake_hands(struct sl_redis_tls *tls, struct failure *reterr);

/* The time for that is over: says so, by what the peer has said so far. -ECONNREFUSED. */
int sl_redis_tls_time_out(const struct sl_redis_tls *tls, struct failure *reterr);

/* For the peer. 0; -EPROTO; -ENOMEM. */
int sl_redis_tls_seal(struct sl_redis_tls *tls, struct sl_slice bytes, struct failure *reterr);

/* What of that which was fed is for us: as many bytes as there are, or as `room` holds. 0: no more;
 * -EACCES, -EPROTO; -ECONNRESET: the peer has ended it; -ENOMEM. */
ssize_t sl_redis_tls_open(struct sl_redis_tls *tls, char *room, size_t room_size,
                          struct failure *reterr);

/* Moves what is for the peer to the end of `out`, whose `failed` tells whether it could. */
void sl_redis_tls_take(struct sl_redis_tls *tls, struct buffer *out);
