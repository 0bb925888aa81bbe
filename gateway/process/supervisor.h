/* gateway/process/supervisor.h - the parent: starts the workers, watches them, and stops them in
 * order.
 *
 * It serves no clients, so nothing a client sends can harm it. A worker that ends is restarted on
 * the same listening socket, with its queue of connections; one that hangs is killed first. The
 * intake process is treated in the same way, and is ended after the workers.
 *
 * SIGTERM and SIGINT let the workers say goodbye to their clients; a second one ends them at once.
 * On SIGHUP the settings are reloaded and, if they are valid, the workers are told to do the same.
 * The private Redis, if there is one, is watched too and stopped last, unless a successor has asked
 * for our sockets and serves: then the successor continues with it. If the supervisor is killed,
 * the kernel kills its workers. */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "gateway/config/config.h"
#include "gateway/metrics/history.h"
#include "gateway/metrics/metrics.h"
#include "gateway/process/gateway_parts.h"
#include "gateway/process/instance.h"

struct supervisor_settings {
    struct config *config;       /* updated on SIGHUP */
    struct instance *instance;   /* its listeners are closed, and set to -1, when stopping begins */
    struct metrics_board *board; /* has a slot for each worker, which determines their number */
    struct admission *admission; /* shared by the workers; updated when one of them dies */
    struct fair_use *uses;       /* shared by the workers */
    struct slow_board *slow_board; /* shared by the workers */
    struct history *history;       /* written by the supervisor, shown by the workers */
    struct broadcast *broadcast;   /* shared by the workers; NULL: there is no intake process */
    struct key_board *key_board;   /* by which workers request that keys are fetched */
    const struct site *site;       /* served by the workers; NULL: none */
    int started_fd;    /* gets a byte and is closed when all have been ready; -1: none */
    unsigned grace_ms; /* how much longer than drain-timeout a worker may take to end */
    int (*worker_main)(const struct gateway_parts *parts); /* gateway_run(), except in tests */
    int (*intake_main)(const struct gateway_parts *parts); /* used with a broadcast */
};

/* Runs until it is told to stop; SIGTERM, SIGINT and SIGHUP stay blocked afterwards, because the
 * process is about to end. 0: all processes ended in order; a negative errno: a worker could not be
 * started, or had to be killed, or the private Redis does not start: *reterr says which. */
int supervisor_run(const struct supervisor_settings *settings, struct failure *reterr);
