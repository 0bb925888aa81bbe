/* gateway/http/acceptor.h - connections from listening sockets.
 *
 * Some of them each turn of the loop. One that comes when descriptors have run out is hung up on:
 * left in the queue, it would wake the loop for ever. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "gateway/metrics/metrics.h"

struct acceptor;

struct acceptor_settings {
    uv_loop_t *loop;
    const int *listeners; /* stay the caller's, who closes them after acceptor_close() */
    unsigned listener_count;
    unsigned user_timeout_ms; /* TCP_USER_TIMEOUT; 0: the kernel's */
    struct metrics *metrics;
    /* A connection, which the callee owns now. */
    void (*accepted)(void *owner, int fd);
    void *owner;
};

/* NULL: out of memory or descriptors. */
struct acceptor *acceptor_new(const struct acceptor_settings *settings);
/* Begins to accept; who connected before waits in the sockets' queues. */
void acceptor_open(struct acceptor *acceptor);
/* Accepts no more. `empties_queues`: but those who have connected already; otherwise they are left
 * to another process with the same sockets. */
void acceptor_close(struct acceptor *acceptor, bool empties_queues);
void acceptor_free(struct acceptor *acceptor);
