/* gateway/http/entrances.h - inside transport: connections from listening sockets.
 *
 * Some of them each turn of the loop. One that comes when descriptors have run out is hung up on:
 * left in the queue, it would wake the loop for ever. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "gateway/metrics/metrics.h"

struct entrances;

struct entrances_settings {
    uv_loop_t *loop;
    const int *listeners; /* stay the caller's, who closes them after entrances_close() */
    unsigned listener_count;
    unsigned user_timeout_ms; /* TCP_USER_TIMEOUT; 0: the kernel's */
    struct metrics *metrics;
    /* A connection, which the callee owns now. */
    void (*welcome)(void *owner, int fd);
    void *owner;
};

/* NULL: out of memory or descriptors. */
struct entrances *entrances_new(const struct entrances_settings *settings);
/* Begins to accept; whoever has knocked before waits in the sockets' queues. */
void entrances_open(struct entrances *entrances);
/* Accepts no more. `empties_queues`: but those who have knocked already; otherwise they are left to
 * another process with the same sockets. */
void entrances_close(struct entrances *entrances, bool empties_queues);
void entrances_free(struct entrances *entrances);
