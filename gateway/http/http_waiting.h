/* gateway/http/http_waiting.h - internal to http: what connections wait for, with timeouts and
 * limits.
 *
 * There is a list for each thing that a connection can wait for. All members of a list have the
 * same timeout, and their number is limited: if there is one too many, the one that has waited
 * longest is dropped. One timer serves all lists. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/deadline_list.h"
#include "gateway/metrics/metrics.h"

enum http_wait {
    HTTP_WAIT_NONE,
    HTTP_WAIT_PENDING,   /* for the rest of a request, or of a TLS handshake */
    HTTP_WAIT_IDLE,      /* for the next request */
    HTTP_WAIT_SENDING,   /* for the peer to read what it was sent */
    HTTP_WAIT_LINGERING, /* for the peer to close */
    HTTP_WAIT_COUNT
};

/* Embedded in the object that waits; initially zero. */
struct http_waiter {
    struct deadline deadline;
    enum http_wait wait;
};

struct http_waiting_settings {
    uv_loop_t *loop;
    struct metrics *metrics; /* gauges and counters of the lists */
    struct {
        uint32_t ms;
        size_t most; /* SIZE_MAX: no limit */
    } waits[HTTP_WAIT_COUNT];
    /* The timeout of `waiter` has expired; it is in no list now. */
    void (*overdue)(struct http_waiter *waiter, enum http_wait wait);
    /* The list of `waiter` is full; it is in no list now. */
    void (*dropped)(struct http_waiter *waiter);
};

struct http_waiting {
    struct http_waiting_settings settings;
    struct deadline_list lists[HTTP_WAIT_COUNT];
    uv_timer_t *timer;
    uint64_t timer_due_ms;
};

/* 0; -ENOMEM. */
int http_waiting_init(struct http_waiting *waiting, const struct http_waiting_settings *settings);
/* Removes all waiters. The loop must run once more. */
void http_waiting_done(struct http_waiting *waiting);

/* Waits for this from now on, and for nothing else. A waiter that already waits for it keeps its
 * deadline. HTTP_WAIT_NONE: waits for nothing. */
void http_wait(struct http_waiting *waiting, struct http_waiter *waiter, enum http_wait wait);
