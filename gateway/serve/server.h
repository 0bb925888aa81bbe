/* gateway/serve/server.h - the front of a worker: listening sockets, connections, and the dispatch
 * of requests.
 *
 *     acceptor -> http_server -> routes -> streams | api | endpoints
 *
 * The parts are created, drained and closed here; routes.c dispatches requests. */
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
struct wire_certificate;

struct server_settings {
    uv_loop_t *loop;
    struct control_channel *control; /* for requests to all workers */
    const struct config *config;
    /* LISTENER_COUNT of them. The caller owns the sockets, and closes them after server_drain() was
     * called. */
    const struct listener *listeners;
    struct deliver *deliver;
    struct dictionaries *dictionaries; /* NULL: no compression */
    struct api *api;
    const struct front_settings *front; /* current value at each request */
    struct origin_policy *origins;
    const struct client_trust *trust; /* current value at each request */
    struct admission *admission;
    struct fair_use *uses;
    unsigned worker;
    struct metrics *metrics;
    const struct metrics_board *board;
    struct slow_board *slow_board; /* of all workers; we write our part */
    const struct history *history; /* written by the parent */
    struct user_checks *user_checks;
    struct pass_store *passes;
    struct rule_store *rules;
    struct audit_log *audit;
    const struct site *site; /* web pages; NULL: none */
};

/* 0; a negative errno: *reterr says why (certificate, memory). */
int server_new(const struct server_settings *settings, struct server **ret_server,
               struct failure *reterr);

/* From now on new connections use this certificate. The server must have had one from the
 * beginning. */
void server_set_certificate_take(struct server *server, struct wire_certificate *certificate);

/* Starts accepting. */
void server_open(struct server *server);

/* The streams of the worker, valid until server_free(). */
struct streams *server_streams(const struct server *server);

/* Sets the answer of /readyz. */
void server_set_ready(struct server *server, bool ready);

/* Stops accepting. Requests are answered; streams are sent what they are owed and then
 * disconnected, after four fifths of `timeout_ms` even if they are still owed something. `done` is
 * called when the last connection has ended or the time is over. `has_successor`: another process
 * accepts from the same sockets; clients that still got a connection here are served, and told to
 * reconnect. */
void server_drain(struct server *server, uint64_t timeout_ms, bool has_successor,
                  void (*done)(void *owner), void *owner);

/* Closes all remaining connections. Call it once; the loop must then run until it is empty. */
void server_close(struct server *server);
void server_free(struct server *server); /* must be closed, and the loop must have run */
