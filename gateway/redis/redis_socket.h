/* gateway/redis/redis_socket.h - a non-blocking stream of bytes to Redis, TCP, TLS or unix, on a
 * loop.
 *
 * One connection at a time: redis_socket_open(), then on_open or on_lost; after on_open, on_bytes
 * and on_turn_end as data comes, until on_lost or redis_socket_close(). However a connection ends,
 * by FIN, RST or a failed write, on_lost says so. A turn of the loop reads at most about 1 MiB, so
 * that others get theirs. All callbacks come from the loop. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/slice.h"
#include "src/redis/redis_address.h"

struct redis_socket;

struct redis_socket_callbacks {
    void (*on_open)(void *context);
    /* At most 16 KiB. May close the socket: then nothing more comes. */
    void (*on_bytes)(void *context, struct sl_slice bytes);
    /* All that a turn brings has been given to on_bytes; on_lost may follow. */
    void (*on_turn_end)(void *context);
    /* The connection failed or ended; it is closed already. `reason` is for humans. */
    void (*on_lost)(void *context, const char *reason);
};

/* `address` says where; it is copied. What is sent and cannot leave yet is kept, up to
 * `max_unsent_bytes`; beyond that the connection ends. NULL: out of memory. */
struct redis_socket *redis_socket_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                      size_t max_unsent_bytes,
                                      const struct redis_socket_callbacks *callbacks,
                                      void *context);
/* Closes it; no callback comes any more. The loop must run once more to let go of the handle. */
void redis_socket_free(struct redis_socket *sock);

/* Looks the name up, off the loop, and connects to the first of its addresses that accepts. One
 * that neither accepts nor refuses holds the others up until the socket is closed; the next opening
 * begins with the address behind it; so it does after one where TLS was not agreed on. 0; negative
 * errno: nothing will be called back. The socket is closed before. */
int redis_socket_open(struct redis_socket *sock);
void redis_socket_close(struct redis_socket *sock);

/* Opened, and not open yet: what it waits for, as a reason to give up. Lives until it is closed. */
const char *redis_socket_why_not_open(struct redis_socket *sock);

/* Another endpoint to connect to; the address has no path. The socket is closed. */
void redis_socket_set_endpoint(struct redis_socket *sock, const struct sl_redis_endpoint *endpoint);

/* Reads nothing for so many milliseconds; what comes meanwhile waits in the kernel and is read in
 * one turn. The socket is open. */
void redis_socket_rest(struct redis_socket *sock, uint32_t ms);

/* Sends a command of Redis's protocol, in this turn of the loop, and keeps what does not fit. The
 * socket is open. 0; -ENOMEM: nothing of it is sent. Any other trouble is told by on_lost in a
 * later turn, never at once. */
int redis_socket_send(struct redis_socket *sock, int argc, const char *const *argv,
                      const size_t *argvlen);
