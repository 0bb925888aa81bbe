/* gateway/serve/server_private.h - internal to serve: the parts of a server. */
#pragma once

#include "base/buffer.h"
#include "base/log.h"
#include "gateway/api/api.h"
#include "gateway/http/acceptor.h"
#include "gateway/http/http_server.h"
#include "gateway/http/listener.h"
#include "gateway/serve/server.h"
#include "gateway/streams/streams.h"

struct server_listener {
    struct server *server;
    struct acceptor *acceptor; /* NULL: there is no such port, or it is closed */
    bool with_tls, with_proxy;
    enum listener_kind kind;
};

struct server {
    struct server_settings settings;
    struct turn turn;
    struct wires *wires;
    struct http_server *http;
    struct streams *streams;
    struct server_listener listeners[LISTENER_COUNT];
    uv_prepare_t *turn_end; /* runs before the loop waits */
    uv_timer_t *drain_timer;
    bool is_closed;
    bool is_draining;
    bool has_successor; /* while draining */
    uint64_t drain_began_ms, drain_timeout_ms;
    void (*drained)(void *owner);
    void *drain_owner;
    struct log_rate refusal_rate, token_rate;
};

/* --- routes.c --- */

extern const struct http_handler server_handler;

/* --- refusals.c --- */

/* Counts a refusal, logs it at a limited rate, and writes audit events to their file. */
void server_count_refusal(struct server *server, const struct http_connection *connection,
                          const struct http_refusal *refusal);
/* The same, and sends the refusal. */
void server_refuse(struct server *server, struct http_connection *connection,
                   const struct http_refusal *refusal);
/* Clients are not told what was wrong with their token, so the log must say it. */
void server_count_token_fault(struct server *server, const struct http_connection *connection,
                              enum token_fault fault);

/* Audits an action, or attempted action, of an administrator. */
void server_audit_admin(struct server *server, const struct http_connection *connection,
                        const struct api_act *act, int status);

/* --- usage.c --- */

/* GET /v1/usage. 0: answered; -EPROTO: *refusal, and *ret_fault for log and metrics. */
int usage_answer(struct server *server, struct http_connection *connection,
                 const struct http_request *request, struct http_refusal *refusal,
                 enum token_fault *ret_fault);

/* --- endpoints.c --- */

/* Answers requests that are neither streams nor API: endpoints for operators, the files of the
 * dashboard, or 404. */
void endpoints_answer(struct server *server, struct http_connection *connection,
                      const struct http_request *request);
/* -EPROTO: *refusal says that there is nothing at this path, and what may have been meant. */
int endpoints_refuse_path(const struct server *server, const struct http_connection *connection,
                          struct sl_slice path, struct http_refusal *refusal);
/* Fills *refusal: this path does not take a body. Returns -EPROTO. */
int endpoints_refuse_body(struct server *server, struct http_connection *connection,
                          const struct http_request *request, struct http_refusal *refusal);
