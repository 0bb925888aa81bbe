/* gateway/redis/redis_socket.h - a non-blocking byte stream to Redis over TCP, TLS or a Unix
 * socket, on a loop.
 *
 * One connection at a time: redis_socket_open(), then on_open or on_lost; after on_open, on_bytes
 * and on_turn_end when data arrives, until on_lost or redis_socket_close(). on_lost is called
 * however a connection ends: by FIN, RST or a failed write. A turn of the loop reads at most about
 * 1 MiB, so that others are served. All callbacks are called from the loop. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/slice.h"
#include "src/redis/redis_address.h"

struct redis_socket;

struct redis_socket_callbacks {
    void (*on_open)(void *context);
    /* At most 16 KiB. May close the socket, after which no callback follows. */
    void (*on_bytes)(void *context, struct sl_slice bytes);
    /* All data of a turn was passed to on_bytes; on_lost may follow. */
    void (*on_turn_end)(void *context);
    /* The connection failed or ended, and is already closed. `reason` is for humans. */
    void (*on_lost)(void *context, const char *reason);
};

/* `address` is copied. Data that cannot be sent yet is buffered, up to `max_unsent_bytes`; beyond
 * that the connection ends. NULL: out of memory. */
struct redis_socket *redis_socket_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                      size_t max_unsent_bytes,
                                      const struct redis_socket_callbacks *callbacks,
                                      void *context);
/* Closes it; no callback is called any more. The loop must run once more to close the handle. */
void redis_socket_free(struct redis_socket *sock);

/* Looks up the name, off the loop, and connects to the first of its addresses that accepts. An
 * address that neither accepts nor refuses blocks the others until the socket is closed; the next
 * opening begins with the address after it, and likewise after one where the TLS handshake failed.
 * 0; negative errno: no callback follows. The socket must be closed. */
int redis_socket_open(struct redis_socket *sock);
void redis_socket_close(struct redis_socket *sock);

/* For an opened socket that is not connected yet: what it waits for, as a reason to give up. Valid
 * until it is closed. */
const char *redis_socket_why_not_open(struct redis_socket *sock);

/* Sets another address to connect to. The address must have no path, and the socket must be
 * closed. */
void redis_socket_set_endpoint(struct redis_socket *sock, const struct sl_redis_endpoint *endpoint);

/* Reads nothing for this time; data that arrives meanwhile stays in the kernel and is read in one
 * turn. The socket must be open. */
void redis_socket_rest(struct redis_socket *sock, uint32_t ms);

/* Sends a command of the Redis protocol, in this turn of the loop, and buffers what does not fit.
 * The socket must be open. 0; -ENOMEM: nothing of it is sent. Other errors are reported by on_lost
 * in a later turn, never at once. */
int redis_socket_send(struct redis_socket *sock, int argc, const char *const *argv,
                      const size_t *argvlen);
