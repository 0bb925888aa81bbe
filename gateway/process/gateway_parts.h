/* gateway/process/gateway_parts.h - what the parent passes to a worker or the intake process.
 *
 * They run gateway_run() (gateway/gateway.h) and intake_process_main(). Later messages of the
 * parent are signals. */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "gateway/config/config.h"
#include "gateway/metrics/metrics.h"

struct admission;
struct broadcast;
struct fair_use;
struct history;
struct key_board;
struct listener;
struct site;
struct slow_board;

struct gateway_parts {
    struct config *config;         /* this process's own copy */
    const char *redis_url;         /* of the configured or the private Redis */
    struct metrics_board *board;   /* shared by all workers */
    struct admission *admission;   /* shared by all workers */
    struct fair_use *uses;         /* shared by all workers */
    struct slow_board *slow_board; /* shared by all workers */
    const struct history *history; /* written by the parent */
    struct broadcast *broadcast;   /* by which workers receive from Redis; NULL: a single worker
                                      does so itself */
    struct key_board *key_board;   /* shared by all workers and the process that fetches keys */
    const struct site *site;       /* web pages; NULL: none */
    unsigned worker;               /* index of our slot; unused in the intake process */
    uint32_t gateway;              /* a random number, the same in all workers */
    const struct listener
        *listeners;       /* LISTENER_COUNT of them; to accept from, and to close at the end */
    bool accepts_at_once; /* false: when GATEWAY_SIGNAL_OPEN arrives */
    int ready_fd;         /* one byte is written to it when we can serve, which means subscribed;
                             -1: none */
};

/* Signals of the parent to its workers. */
enum {
    GATEWAY_SIGNAL_OPEN = SIGUSR1,    /* start accepting */
    GATEWAY_SIGNAL_REPLACED = SIGUSR2 /* like SIGTERM, but others accept from the same sockets */
};
