/* gateway/ops/supervisor.h - the parent: starts the workers, watches them, stops them in order.
 *
 * It serves nobody, so that nothing a client sends can hurt it. A worker that ends is started again
 * on the same listening socket, with its queue of connections. SIGTERM and SIGINT let the workers
 * take leave of their clients, a second one ends them at once; SIGHUP is passed on. The private
 * Redis, if there is one, is watched too and stopped last. When the supervisor is killed, the
 * kernel kills its workers. */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "gateway/config.h"
#include "gateway/gateway.h"
#include "gateway/ops/metrics.h"
#include "gateway/ops/private_redis.h"

struct supervisor_settings {
    const struct config *config;
    struct private_redis *private_redis; /* NULL: config names a Redis */
    struct metrics_board *board;         /* its slots are the workers */
    struct admission *admission;         /* what the workers share; told when one of them dies */
    const struct site *site;             /* for the workers to serve; NULL: none */
    int *listeners; /* dealt out to the workers; all closed, and set to -1, when stopping begins */
    unsigned listener_count;
    uint16_t port;     /* of the listeners */
    unsigned grace_ms; /* how much longer than drain-timeout a worker may take to end */
    int (*worker_main)(const struct gateway_parts *parts); /* gateway_run(), but for tests */
};

/* Runs until told to stop; SIGTERM, SIGINT and SIGHUP are blocked from then on, for what is left of
 * the process is its end. 0: everybody left in order; a negative errno: a worker could not start,
 * or had to be killed, or the private Redis does not start: *reterr says which. */
int supervisor_run(const struct supervisor_settings *settings, struct failure *reterr);
