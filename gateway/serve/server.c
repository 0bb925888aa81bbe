/* server.c - the front of a worker: creates, drains and closes its parts.
 *
 * Tasks that were scheduled in a turn of the loop run at its end, before the loop waits: first
 * delivery sends what it has gathered, then connections and streams with something to do get their
 * turn. While the server drains, it checks at the end of each turn whether any clients are left. */
#include "gateway/serve/server.h"

#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "gateway/serve/server_private.h"

enum { DRAIN_LOOK_MS = 20 };

/* --- draining --- */

static void drain_done(struct server *server)
{
    void (*drained)(void *owner) = server->drained;

    uv_timer_stop(server->drain_timer);
    server->drained = NULL;
    if (drained)
        drained(server->drain_owner);
}

static void on_turn_end(uv_prepare_t *prepare)
{
    struct server *server = prepare->data;

    deliver_turn_end(server->settings.deliver);
    turn_run(&server->turn);
    if (server->drained && streams_count(server->streams) == 0 &&
        !http_server_is_busy(server->http))
        drain_done(server);
}

/* A queue may become empty because the socket took it, the log was read to its end, or the reader's
 * lists are known: polling all of them regularly is simpler than notifications. */
static void on_drain_look(uv_timer_t *timer)
{
    struct server *server = timer->data;
    uint64_t spent_ms = uv_now(server->settings.loop) - server->drain_began_ms;

    if (spent_ms >= server->drain_timeout_ms) {
        log_warn("drain_timeout", "streams_left=%zu", streams_count(server->streams));
        drain_done(server);
        return;
    }
    streams_drain(server->streams, server->has_successor,
                  spent_ms >= server->drain_timeout_ms / 5 * 4);
}

void server_drain(struct server *server, uint64_t timeout_ms, bool has_successor,
                  void (*done)(void *owner), void *owner)
{
    server->is_draining = true;
    server->has_successor = has_successor;
    server->drained = done;
    server->drain_owner = owner;
    server->drain_began_ms = uv_now(server->settings.loop);
    server->drain_timeout_ms = timeout_ms;
    for (unsigned i = 0; i < LISTENER_COUNT; i++) {
        if (server->listeners[i].acceptor)
            acceptor_close(server->listeners[i].acceptor, !has_successor);
    }
    deliver_flush_all(server->settings.deliver);
    http_server_drain(server->http, has_successor);
    streams_drain(server->streams, has_successor, false);
    uv_timer_start(server->drain_timer, on_drain_look,
                   timeout_ms < DRAIN_LOOK_MS ? timeout_ms : DRAIN_LOOK_MS, DRAIN_LOOK_MS);
}

/* --- creating --- */

static void on_accepted(void *owner, int fd)
{
    const struct server_listener *listener = owner;

    http_server_accept(listener->server->http, fd, listener->with_tls, listener->with_proxy,
                       listener->kind);
}

static int create_listener(struct server *server, enum listener_kind kind)
{
    const struct config *config = server->settings.config;
    const struct listener *sockets = &server->settings.listeners[kind];
    struct server_listener *listener = &server->listeners[kind];
    const struct acceptor_settings settings = {
        .loop = server->settings.loop,
        .listeners = sockets->sockets,
        .listener_count = sockets->count,
        .user_timeout_ms = (unsigned)config->tcp_user_timeout_ms,
        .metrics = server->settings.metrics,
        .accepted = on_accepted,
        .owner = listener,
    };

    listener->server = server;
    listener->kind = kind;
    listener->with_tls = kind == LISTENER_PUBLIC && wires_have_tls(server->wires);
    listener->with_proxy = sockets->with_proxy;
    if (kind != LISTENER_PUBLIC && sockets->count == 0)
        return 0;
    listener->acceptor = acceptor_new(&settings);
    return listener->acceptor ? 0 : -ENOMEM;
}

static int create_wires(struct server *server, struct failure *reterr)
{
    const struct config *config = server->settings.config;
    const struct wires_settings settings = {
        .loop = server->settings.loop,
        .certificate = config->tls_cert,
        .key = config->tls_key,
        .handshake_timeout_ms = (uint32_t)config->handshake_timeout_ms,
    };

    return wires_new(&settings, &server->wires, reterr);
}

static int create_http(struct server *server)
{
    const struct config *config = server->settings.config;
    const struct http_server_settings settings = {
        .loop = server->settings.loop,
        .turn = &server->turn,
        .wires = server->wires,
        .metrics = server->settings.metrics,
        .handler = &server_handler,
        .owner = server,
        .trust = server->settings.trust,
        .max_head_bytes = config->max_header_bytes,
        .max_body_bytes = config->max_request_bytes,
        .timeout_ms = (uint32_t)config->handshake_timeout_ms,
        .max_pending = config->max_pending_handshakes,
        .max_idle = config->max_idle_connections,
        .max_lingering = config->max_lingering_connections,
    };

    server->http = http_server_new(&settings);
    return server->http ? 0 : -ENOMEM;
}

static int create_streams(struct server *server)
{
    const struct streams_settings settings = {
        .loop = server->settings.loop,
        .control = server->settings.control,
        .turn = &server->turn,
        .deliver = server->settings.deliver,
        .dictionaries = server->settings.dictionaries,
        .front = server->settings.front,
        .admission = server->settings.admission,
        .uses = server->settings.uses,
        .worker = server->settings.worker,
        .metrics = server->settings.metrics,
        .slow_board = server->settings.slow_board,
        .user_checks = server->settings.user_checks,
        .passes = server->settings.passes,
        .rules = server->settings.rules,
        .audit = server->settings.audit,
    };

    server->streams = streams_new(&settings);
    return server->streams ? 0 : -ENOMEM;
}

static int create_handles(struct server *server)
{
    server->turn_end = mem_zalloc(sizeof(*server->turn_end));
    if (!server->turn_end)
        return -ENOMEM;
    uv_prepare_init(server->settings.loop, server->turn_end);
    server->turn_end->data = server;
    uv_prepare_start(server->turn_end, on_turn_end);

    server->drain_timer = mem_zalloc(sizeof(*server->drain_timer));
    if (!server->drain_timer)
        return -ENOMEM;
    uv_timer_init(server->settings.loop, server->drain_timer);
    server->drain_timer->data = server;
    return 0;
}

int server_new(const struct server_settings *settings, struct server **ret_server,
               struct failure *reterr)
{
    struct server *server = mem_zalloc(sizeof(*server));
    int r;

    if (!server)
        return failure_set(reterr, -ENOMEM, "out of memory");
    server->settings = *settings;
    turn_init(&server->turn);
    failure_set(reterr, -ENOMEM, "out of memory");
    r = create_wires(server, reterr);
    if (r == 0)
        r = create_handles(server);
    if (r == 0)
        r = create_http(server);
    if (r == 0)
        r = create_streams(server);
    for (unsigned i = 0; i < LISTENER_COUNT && r == 0; i++)
        r = create_listener(server, (enum listener_kind)i);
    if (r < 0) {
        server_close(server);
        uv_run(settings->loop, UV_RUN_NOWAIT);
        server_free(server);
        return r;
    }
    *ret_server = server;
    return 0;
}

void server_set_certificate_take(struct server *server, struct wire_certificate *certificate)
{
    wires_set_certificate_take(server->wires, certificate);
}

void server_open(struct server *server)
{
    for (unsigned i = 0; i < LISTENER_COUNT; i++) {
        if (server->listeners[i].acceptor)
            acceptor_open(server->listeners[i].acceptor);
    }
}

struct streams *server_streams(const struct server *server)
{
    return server->streams;
}

void server_set_ready(struct server *server, bool ready)
{
    streams_set_ready(server->streams, ready);
}

/* --- closing --- */

static void free_handle(uv_handle_t *handle)
{
    mem_free(handle);
}

void server_close(struct server *server)
{
    if (server->is_closed)
        return;
    server->is_closed = true;
    for (unsigned i = 0; i < LISTENER_COUNT; i++) {
        acceptor_free(server->listeners[i].acceptor);
        server->listeners[i].acceptor = NULL;
    }
    if (server->streams)
        streams_close(server->streams);
    if (server->http)
        http_server_close(server->http);
    turn_run(&server->turn);
    if (server->wires)
        wires_close(server->wires);
    if (server->turn_end)
        uv_close((uv_handle_t *)server->turn_end, free_handle);
    if (server->drain_timer)
        uv_close((uv_handle_t *)server->drain_timer, free_handle);
}

void server_free(struct server *server)
{
    if (!server)
        return;
    streams_free(server->streams);
    http_server_free(server->http);
    wires_free(server->wires);
    mem_free(server);
}
