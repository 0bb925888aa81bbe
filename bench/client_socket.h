/* bench/client_socket.h - one non-blocking connection to a server on loopback, with TLS or without.
 *
 * Reading and sending behave like recv() and send() of a non-blocking socket: -1 with EAGAIN when
 * there is nothing to read, 0 at the end. A failure of TLS is EPROTO. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct client_socket {
    int fd;
    struct ssl_st *ssl; /* NULL: plain */
};

/* Starts to connect; ends the program if that is impossible. `number` chooses one of several source
 * addresses, so that ports do not run out. */
void client_socket_open(struct client_socket *socket, uint16_t port, uint64_t number, bool is_tls);

/* Call it when the descriptor has become writable, then, with TLS, whenever it is readable. 1:
 * connected, including the handshake; 0: not yet; -1: refused, see errno. */
int client_socket_connect(struct client_socket *socket);

ssize_t client_socket_read(struct client_socket *socket, void *room, size_t size);
ssize_t client_socket_send(struct client_socket *socket, const void *bytes, size_t size);

/* Resets the connection: tens of thousands of sockets must not stay in TIME_WAIT. */
void client_socket_close(struct client_socket *socket);
