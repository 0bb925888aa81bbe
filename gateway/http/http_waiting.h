/* gateway/http/http_waiting.h - inside http: who waits for what, until when, and how many may.
 *
 * There is a list for each thing that a connection can wait for. All who wait in a list have the
 * same time, and there is a bound to how many they may be: when there is one more, the one that has
 * waited longest is dropped. One timer serves all lists. */
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

/* Embedded in whoever waits; zeroed at first. */
struct http_waiter {
    struct deadline deadline;
    enum http_wait wait;
};

struct http_waiting_settings {
    uv_loop_t *loop;
    struct metrics *metrics; /* gauges and counts of the lists */
    struct {
        uint32_t ms;
        size_t most; /* SIZE_MAX: no bound */
    } waits[HTTP_WAIT_COUNT];
    /* The time of `waiter` is up; it waits for nothing now. */
    void (*overdue)(struct http_waiter *waiter, enum http_wait wait);
    /* There is no room for `waiter` any more; it waits for nothing now. */
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
/* Nobody waits any more. The loop must run once more. */
void http_waiting_done(struct http_waiting *waiting);

/* From now on it waits for this, and for nothing else. One that waits for it already keeps its
 * deadline. HTTP_WAIT_NONE: it waits for nothing. */
void http_wait(struct http_waiting *waiting, struct http_waiter *waiter, enum http_wait wait);
