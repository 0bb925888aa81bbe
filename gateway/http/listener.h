/* gateway/http/listener.h - one port, a listening socket for each worker.
 *
 * Every socket has SO_REUSEPORT: the kernel spreads new connections over them. They are opened
 * once, by the parent, which keeps them: what waits in the queue of a crashed worker's socket is
 * accepted by its successor. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/listen_address.h"

/* Where clients come in: a port for everybody and, by option, one more for operators. */
enum listener_kind { LISTENER_PUBLIC, LISTENER_OPS, LISTENER_COUNT };

enum { LISTENERS_MAX = 256 }; /* of a listener: one for each worker that there may be */

/* The sockets of a listener. */
struct listener {
    int sockets[LISTENERS_MAX];
    unsigned count; /* 0: there is no such listener */
    uint16_t port;
    bool with_proxy; /* connections begin with a PROXY header */
};

/* Opens `count` listening sockets (close-on-exec, non-blocking) into `ret_sockets`, all on the same
 * port, which is *ret_port. A port that any other program listens on, be it with SO_REUSEPORT, is
 * refused. 0; negative errno: *reterr says why, nothing is open. */
int listener_open(const struct listen_address *address, unsigned count, int *ret_sockets,
                  uint16_t *ret_port, struct failure *reterr);

/* For sockets that another process opened: is `socket` bound to `address`, whatever the port where
 * that is 0? */
bool listener_is_at(int socket, const struct listen_address *address, uint16_t *ret_port);

enum { LISTENER_DESCRIPTION_SIZE = 64 };

/* "127.0.0.1:8080", "*:80", "[::1]:80": where `socket` is bound, into `room`, which is returned. */
const char *listener_describe(int socket, char room[static LISTENER_DESCRIPTION_SIZE]);

/* Binds more sockets, from number `have` up to `want`, to where the first one listens. They get
 * connections from listener_start() on, which cannot be taken back without resetting some. 0; a
 * negative errno, and none was added. */
int listener_add(int *sockets, unsigned have, unsigned want);
int listener_start(int socket);

/* Whether `worker` of `workers` accepts from the socket number `index` of `count`. Every socket has
 * somebody: each worker gets as many of its own as there are for everyone, and what is left over
 * (sockets that were opened for more workers) is for all, so that all get the same share. */
bool listener_is_for(unsigned index, unsigned count, unsigned worker, unsigned workers);
