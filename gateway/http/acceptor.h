/* gateway/http/acceptor.h - accepts connections from listening sockets.
 *
 * It accepts some in each turn of the loop. When file descriptors have run out, new connections are
 * closed at once; left in the queue, they would wake the loop for ever. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "gateway/metrics/metrics.h"

struct acceptor;

struct acceptor_settings {
    uv_loop_t *loop;
    const int *listeners; /* owned by the caller, who closes them after acceptor_close() */
    unsigned listener_count;
    unsigned user_timeout_ms; /* TCP_USER_TIMEOUT; 0: the kernel's default */
    struct metrics *metrics;
    /* Called with each connection, which the callee owns. */
    void (*accepted)(void *owner, int fd);
    void *owner;
};

/* NULL: out of memory or file descriptors. */
struct acceptor *acceptor_new(const struct acceptor_settings *settings);
/* Starts accepting, beginning with the connections that are in the queues. */
void acceptor_open(struct acceptor *acceptor);
/* Stops accepting. `empties_queues`: accepts those that are in the queues first; otherwise they are
 * left to another process with the same sockets. */
void acceptor_close(struct acceptor *acceptor, bool empties_queues);
void acceptor_free(struct acceptor *acceptor);
