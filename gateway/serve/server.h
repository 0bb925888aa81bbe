/* gateway/serve/server.h - a worker's front: listening sockets, connections, and where requests go.
 *
 *     acceptor -> http_server -> routes -> streams | api | endpoints
 *
 * Here the parts are put together, drained and closed; routes.c says which request goes where. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "gateway/config/config.h"
#include "gateway/delivery/deliver.h"
#include "gateway/front/admission.h"
#include "gateway/front/fair_use.h"
#include "gateway/front/origin.h"
#include "gateway/front/stream_request.h"
#include "gateway/http/client_address.h"
#include "gateway/metrics/metrics.h"

struct api;
struct audit_log;
struct history;
struct listener;
struct pass_store;
struct rule_store;
struct server;
struct site;
struct slow_board;
struct streams;
struct user_checks;

struct server_settings {
    uv_loop_t *loop;
    struct control_channel *control; /* by which all workers are asked */
    const struct config *config;
    /* LISTENER_COUNT of them. The sockets stay the caller's, who closes them once server_drain()
     * was called. */
    const struct listener *listeners;
    struct deliver *deliver;
    struct dictionaries *dictionaries; /* NULL: nothing is compressed */
    struct api *api;
    const struct front_settings *front; /* as it is at each request */
    struct origin_policy *origins;
    const struct client_trust *trust; /* as it is at each request */
    struct admission *admission;
    struct fair_use *uses;
    unsigned worker;
    struct metrics *metrics;
    const struct metrics_board *board;
    struct slow_board *slow_board; /* of all workers; we write our part */
    const struct history *history; /* the parent's */
    struct user_checks *user_checks;
    struct pass_store *passes;
    struct rule_store *rules;
    struct audit_log *audit;
    const struct site *site; /* pages for browsers; NULL: none */
};

/* 0; a negative errno: *reterr says what (certificate, memory). */
int server_new(const struct server_settings *settings, struct server **ret_server,
               struct failure *reterr);

/* Connections from now on are shown the certificate that the settings name now. 0 (without TLS
 * too); a negative errno: *reterr says why, and the old one stays. */
int server_reload_certificate(struct server *server, struct failure *reterr);

/* Begins to accept. */
void server_open(struct server *server);

/* Those of the worker: until server_free(). */
struct streams *server_streams(const struct server *server);

/* Whether /readyz says yes. */
void server_set_ready(struct server *server, bool ready);

/* Accepts no more. Requests are answered, streams sent what they are owed and then disconnected;
 * after four fifths of `timeout_ms` those that are still owed something are told, too. `done` is
 * called when the last connection is gone or the time is up. `has_successor`: another process
 * accepts from the same sockets; so whoever has got in here by chance is served, and sent there. */
void server_drain(struct server *server, uint64_t timeout_ms, bool has_successor,
                  void (*done)(void *owner), void *owner);

/* Closes every connection that is left: once, and the loop must then run until it is empty. */
void server_close(struct server *server);
void server_free(struct server *server); /* closed, and the loop has run */
