/* gateway/http/listener.h - a port with a listening socket for each worker.
 *
 * All sockets have SO_REUSEPORT, so that the kernel distributes new connections over them. The
 * parent opens them once and keeps them, so that connections in the queue of a crashed worker's
 * socket are accepted by its replacement. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/listen_address.h"

/* The ports: a public one and, optionally, one for operators. */
enum listener_kind { LISTENER_PUBLIC, LISTENER_OPS, LISTENER_COUNT };

enum { LISTENERS_MAX = 256 }; /* of a listener: one for each possible worker */

/* The sockets of a listener. */
struct listener {
    int sockets[LISTENERS_MAX];
    unsigned count; /* 0: there is no such listener */
    uint16_t port;
    bool with_proxy; /* connections begin with a PROXY header */
};

/* Opens `count` listening sockets (close-on-exec, non-blocking) into `ret_sockets`, all on the same
 * port, which is stored in *ret_port. A port on which any other program listens, even with
 * SO_REUSEPORT, is refused. 0; negative errno: *reterr says why, nothing is open. */
int listener_open(const struct listen_address *address, unsigned count, int *ret_sockets,
                  uint16_t *ret_port, struct failure *reterr);

/* For sockets opened by another process: whether `socket` is bound to `address`; if its port is 0,
 * any port matches. */
bool listener_is_at(int socket, const struct listen_address *address, uint16_t *ret_port);

enum { LISTENER_DESCRIPTION_SIZE = 64 };

/* Writes the address of `socket`, such as "127.0.0.1:8080", "*:80" or "[::1]:80". Returns
 * `room`. */
const char *listener_describe(int socket, char room[static LISTENER_DESCRIPTION_SIZE]);

/* Binds more sockets, from number `have` up to `want`, to the address of the first one. They
 * receive connections from listener_start() on, which cannot be undone without resetting some. 0; a
 * negative errno, and none was added. */
int listener_add(int *sockets, unsigned have, unsigned want);
int listener_start(int socket);

/* Whether `worker` of `workers` accepts from socket number `index` of `count`. Every socket is
 * used: each worker gets the same number of sockets of its own, and the remaining ones (opened for
 * more workers) are shared by all, so that the load is even. */
bool listener_is_for(unsigned index, unsigned count, unsigned worker, unsigned workers);
