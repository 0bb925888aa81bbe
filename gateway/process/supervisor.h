/* gateway/process/supervisor.h - the parent: starts the workers, watches them, stops them in order.
 *
 * It serves nobody, so that nothing a client sends can hurt it. A worker that ends is started again
 * on the same listening socket, with its queue of connections; one that hangs is killed first. The
 * intake process is treated alike, and is ended when the workers have.
 * SIGTERM and SIGINT let the workers take leave of their clients, a second one ends them at once;
 * on SIGHUP the settings are read again and, when they are good, the workers told to do the same.
 * The private Redis, if there is one, is watched too and stopped last, unless a successor has asked
 * for our sockets and serves: then it goes on with it. When the supervisor is killed, the kernel
 * kills its workers. */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "gateway/config/config.h"
#include "gateway/metrics/history.h"
#include "gateway/metrics/metrics.h"
#include "gateway/process/gateway_parts.h"
#include "gateway/process/instance.h"

struct supervisor_settings {
    struct config *config;       /* brought up to date on SIGHUP */
    struct instance *instance;   /* its listeners are closed, and set to -1, when stopping begins */
    struct metrics_board *board; /* its slots are the workers */
    struct admission *admission; /* what the workers share; told when one of them dies */
    struct fair_use *uses;       /* what the workers share, too */
    struct slow_board *slow_board; /* the same */
    struct history *history;       /* we write it, the workers show it */
    struct broadcast *broadcast;   /* the same; NULL: there is no intake process */
    struct key_board *key_board;   /* by which workers ask for keys to be fetched */
    const struct site *site;       /* for the workers to serve; NULL: none */
    int started_fd;    /* closed when all have been ready, with a byte before; -1: none */
    unsigned grace_ms; /* how much longer than drain-timeout a worker may take to end */
    int (*worker_main)(const struct gateway_parts *parts); /* gateway_run(), but for tests */
    int (*intake_main)(const struct gateway_parts *parts); /* with a broadcast */
};

/* Runs until told to stop; SIGTERM, SIGINT and SIGHUP are blocked from then on, for what is left of
 * the process is its end. 0: everybody left in order; a negative errno: a worker could not start,
 * or had to be killed, or the private Redis does not start: *reterr says which. */
int supervisor_run(const struct supervisor_settings *settings, struct failure *reterr);
