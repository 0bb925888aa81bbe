/* tests/support/peer.h - the other end of a connection: a client on loopback, plain or over TLS.
 *
 * It never blocks: peer_turn() does what can be done now, and the test calls it alternately with
 * the loop of what it tests. What it is told to send is sent as the socket accepts it; what arrives
 * is stored. */
#pragma once

#include <netinet/in.h>
#include <openssl/ssl.h>
#include <stdbool.h>

#include "base/buffer.h"
#include "base/slice.h"

struct peer {
    int fd; /* -1: closed */
    SSL *tls;
    struct buffer to_say, heard;
    size_t reads_most; /* bytes it reads per turn; 0: it does not read */
    bool was_ended;    /* the end of the stream was seen */
    bool was_told;     /* over TLS: by a close_notify */
    bool was_reset;    /* the connection was reset */
};

/* Returns a listening socket on any port of 127.0.0.1, and its address. */
int peer_listen(struct sockaddr_in *ret_address);

/* On return it is connected; the TLS handshake is done in turns. `receive_size`: size of its
 * socket's receive buffer; 0: the default. */
void peer_connect(struct peer *peer, const struct sockaddr_in *address, bool with_tls,
                  int receive_size);
void peer_say(struct peer *peer, struct sl_slice bytes);
void peer_turn(struct peer *peer);
/* Everything that it was told to send has been sent. */
bool peer_has_spoken(const struct peer *peer);
/* Ends its sending half: over TLS with a close_notify. */
void peer_end(struct peer *peer);
void peer_close(struct peer *peer);
/* Closes the connection with a reset. */
void peer_reset(struct peer *peer);
