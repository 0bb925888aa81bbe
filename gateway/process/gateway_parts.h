/* gateway/process/gateway_parts.h - what the parent gives to a worker, or to the intake process.
 *
 * Their halves are gateway_run() (gateway/gateway.h) and intake_process_main(). What the parent
 * says later, it says by signals. */
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
    const struct history *history; /* the parent's */
    struct broadcast *broadcast;   /* by which workers hear Redis; NULL: the one does it itself */
    struct key_board *key_board;   /* shared by all workers and who fetches keys */
    const struct site *site;       /* pages for browsers; NULL: none */
    unsigned worker;               /* which slot of it is ours; of the intake process: none */
    uint32_t gateway;              /* a random number, the same for all workers */
    const struct listener
        *listeners;       /* LISTENER_COUNT; ours to accept from, and to close in the end */
    bool accepts_at_once; /* no: when GATEWAY_SIGNAL_OPEN comes */
    int ready_fd;         /* gets one byte once we could serve: subscribed; -1: nobody */
};

/* What the parent says to its workers. */
enum {
    GATEWAY_SIGNAL_OPEN = SIGUSR1,    /* accept */
    GATEWAY_SIGNAL_REPLACED = SIGUSR2 /* as SIGTERM, but others accept from the same sockets */
};
