/* gateway/gateway.h - one worker: everything from the live channel to the sockets, built top to
 * bottom and freed bottom to top. */
#pragma once

#include "gateway/config.h"
#include "gateway/ops/metrics.h"

struct admission;

struct gateway_parts {
    const struct config *config;
    const char *redis_url;       /* of the configured or the private Redis */
    struct metrics_board *board; /* shared by all workers */
    struct admission *admission; /* shared by all workers */
    unsigned worker;             /* which slot of it is ours */
    int listener;                /* bound and listening; ours to accept from, not to close */
    int ready_fd;                /* gets one byte once we listen and are subscribed; -1: nobody */
};

/* Serves until SIGTERM or SIGINT, takes leave of all clients, returns the exit status. Runs its
 * own event loop; call it in a fresh process. */
int gateway_run(const struct gateway_parts *parts);
