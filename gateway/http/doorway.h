/* gateway/http/doorway.h - from the listening sockets to libwebsockets.
 *
 * Accepts connections and, on plain sockets, reads each request, head and body, before
 * libwebsockets sees a byte, and not one byte more: what a client sends ahead stays in the socket
 * until it is its turn. That is what makes exact answers possible where libwebsockets 4.1 closes
 * without a word or goes wrong:
 *
 *   - a head that is too large (431), malformed (400), too slow (408), a method nobody knows (501);
 *   - a request body without a length (411) or too long (413); `Expect: 100-continue`;
 *   - `Upgrade` to anything but a WebSocket is ignored, as RFC 9110 allows;
 *   - `;` in a query is data, not a separator;
 *   - a token in Sec-WebSocket-Protocol, which libwebsockets reads into 128 bytes, travels on in
 *     a header of our own, and foreign subprotocols are not chosen instead of hung up on.
 *
 * A connection that has been answered comes back for its next request. Connections over TLS go
 * straight to libwebsockets. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "gateway/metrics/metrics.h"

/* The header in which the doorway passes the `bearer.` subprotocol on; from outside it is dropped.
 */
#define DOORWAY_TOKEN_HEADER "x-sluice-protocol-token:"

struct doorway;

struct doorway_settings {
    uv_loop_t *loop;
    const int *listeners; /* stay the caller's, who closes them after doorway_stop() */
    unsigned listener_count;
    bool is_tls;
    size_t max_head_bytes;
    size_t max_body_bytes;
    uint32_t timeout_ms;
    unsigned user_timeout_ms; /* TCP_USER_TIMEOUT; 0: the kernel's */
    unsigned max_pending;     /* connections whose request is not complete yet */
    struct metrics *metrics;
    /* A connection whose request is complete, and which the callee owns now: `head` has been read
     * from it and put right, as without a body; the callee may take `body` over. No head: nothing
     * was read (TLS). */
    void (*admit)(void *owner, int fd, struct sl_slice head, struct buffer *body);
    void *owner;
};

/* NULL: out of memory or descriptors. */
struct doorway *doorway_new(const struct doorway_settings *settings);
/* Begins to accept; whoever has knocked before waits in the sockets' queues. */
void doorway_open(struct doorway *doorway);
/* A connection that was admitted, has been served and may ask again. */
void doorway_welcome_back(struct doorway *doorway, int fd);
/* Accepts no more; what is half read may still come in. `empties_queues`: those who have knocked
 * already are accepted first; otherwise they are left to another process with the same sockets. */
void doorway_stop(struct doorway *doorway, bool empties_queues);
/* Is a request half read, or a refusal on its way? `counts_silent`: connections that have not said
 * anything yet keep it busy, too. */
bool doorway_is_busy(const struct doorway *doorway, bool counts_silent);
void doorway_free(struct doorway *doorway);
