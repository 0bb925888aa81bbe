/* gateway/transport/server.h - the listening socket and every connection that came through it.
 *
 * libwebsockets parses HTTP, does TLS and the WebSocket protocol; we accept, we decide, and we
 * write the streams. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "gateway/config.h"
#include "gateway/delivery/deliver.h"
#include "gateway/front/admission.h"
#include "gateway/front/request.h"
#include "gateway/front/origin.h"
#include "gateway/ops/metrics.h"

struct server;

struct server_settings {
    uv_loop_t *loop;
    const struct config *config;
    int listener; /* stays the caller's */
    struct deliver *deliver;
    struct front_settings front;
    struct origin_policy *origins;
    struct admission *admission;
    unsigned worker;
    struct metrics *metrics;
    const struct metrics_board *board;
};

/* 0; a negative errno: *reterr says what (certificate, memory). Accepts at once. */
int server_new(const struct server_settings *settings, struct server **ret_server,
               struct failure *reterr);

/* Whether /readyz says yes. */
void server_set_ready(struct server *server, bool ready);

/* Accepts no more, says farewell to every stream; `done` is called when the last connection is
 * gone or the time is up. */
void server_drain(struct server *server, uint64_t timeout_ms, void (*done)(void *owner),
                  void *owner);

/* Closes the doorway and every connection that is left: once, and the loop must then run until it
 * is empty, for libwebsockets lets go of connections from the loop only. */
void server_close(struct server *server);
void server_free(struct server *server); /* closed, and the loop has run */
