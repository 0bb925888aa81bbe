/* server.c - what libwebsockets calls back for, and what happens between two turns of the loop. */
#include "gateway/transport/server.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/stable_hash.h"
#include "gateway/http/doorway.h"
#include "gateway/transport/connection.h"
#include "gateway/transport/exchange.h"
#include "gateway/transport/server_private.h"

enum { DRAIN_LOOK_MS = 20 };

uint64_t server_random(struct server *server)
{
    return stable_hash(server->random++);
}

/* --- libwebsockets --- */

static struct connection *connection_get_or_new(struct lws *wsi)
{
    struct connection *connection = lws_get_opaque_user_data(wsi);

    if (!connection) {
        struct server *server = lws_context_user(lws_get_context(wsi));

        connection = connection_new(server, wsi);
        lws_set_opaque_user_data(wsi, connection);
        if (connection && server->given_body) {
            connection->incoming = *server->given_body;
            *server->given_body = BUFFER_INIT;
        }
    }
    return connection;
}

static int on_established(struct connection *connection)
{
    if (!connection || !connection->has_request)
        return -1;
    return connection_start_stream(connection, CONNECTION_WEBSOCKET, &websocket_transport) < 0 ? -1
                                                                                               : 0;
}

static int callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                    size_t size)
{
    struct connection *connection;

    switch (reason) {
    case LWS_CALLBACK_HTTP:
        connection = connection_get_or_new(wsi);
        return connection ? exchange_begin(connection) : -1;
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
        /* After a request on the same connection, one with an unknown Upgrade arrives here with
         * its headers already freed (libwebsockets 4.1.6): `in` must not be looked at, nor may
         * libwebsockets go on. */
        if (lws_hdr_total_length(wsi, WSI_TOKEN_UPGRADE) <= 0)
            return -1;
        connection = connection_get_or_new(wsi);
        return connection ? exchange_upgrade(connection) : -1;
    case LWS_CALLBACK_WSI_DESTROY:
        connection = lws_get_opaque_user_data(wsi);
        lws_set_opaque_user_data(wsi, NULL);
        if (connection)
            connection_gone(connection);
        return 0;
    case LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS: /* `user` is the new context */
        ((struct server *)lws_context_user(lws_get_context(wsi)))->tls = user;
        return 0;
    default:
        break;
    }

    connection = lws_get_opaque_user_data(wsi);
    switch (reason) {
    case LWS_CALLBACK_HTTP_BODY:
        return connection ? exchange_body(connection, sl_slice(in, size)) : -1;
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        return connection ? exchange_body_complete(connection) : -1;
    case LWS_CALLBACK_ESTABLISHED:
        return on_established(connection);
    case LWS_CALLBACK_SERVER_WRITEABLE:
    case LWS_CALLBACK_RECEIVE:
    case LWS_CALLBACK_RECEIVE_PONG:
    case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
        return connection ? websocket_callback(connection, reason, in, size) : -1;
    default:
        return 0;
    }
}

/* tx_packet_size: a smaller one would cut our writes and copy what is left. */
static const struct lws_protocols protocols[] = {
    {.name = "http", .callback = callback, .rx_buffer_size = 256, .tx_packet_size = 1 << 20},
    {.name = "sluice.v1", .callback = callback, .rx_buffer_size = 256, .tx_packet_size = 1 << 20},
    {.name = NULL},
};

/* Its timers are one sorted list: costly with many connections. We ping ourselves. */
static const lws_retry_bo_t no_validity_timers = {.secs_since_valid_ping = 0,
                                                  .secs_since_valid_hangup = 0};

/* Always plain. A client may choose between vhosts, by Host or SNI, and gains nothing by it: both
 * do the same, TLS is what it was when the connection began, and the door is ours to remember. */
static int create_ops_vhost(struct server *server, const struct lws_context_creation_info *base,
                            struct failure *reterr)
{
    struct lws_context_creation_info info = *base;
    struct server_door *door = &server->doors[DOOR_OPS];

    door->vhost = server->doors[DOOR_PUBLIC].vhost;
    if (server->settings.doors[DOOR_OPS].count == 0 || !info.ssl_cert_filepath)
        return 0;
    info.options &= ~(uint64_t)LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
    info.ssl_cert_filepath = info.ssl_private_key_filepath = NULL;
    info.vhost_name = "ops";
    door->vhost = lws_create_vhost(server->context, &info);
    return door->vhost ? 0 : failure_set(reterr, -ENOMEM, "out of memory");
}

static int create_context(struct server *server, struct failure *reterr)
{
    const struct config *config = server->settings.config;
    struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN_SERVER,
        .options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_EXPLICIT_VHOSTS |
                   LWS_SERVER_OPTION_DISABLE_IPV6,
        .foreign_loops = (void *[]){server->settings.loop},
        .protocols = protocols,
        .user = server,
        .gid = -1,
        .uid = -1,
        .pt_serv_buf_size = 8192,
        /* Twice, for libwebsockets files every unknown header with some overhead. */
        .max_http_header_data2 = (unsigned)(2 * config->max_header_bytes),
        .retry_and_idle_policy = &no_validity_timers,
        .timeout_secs = (unsigned)(config->handshake_timeout_ms / 1000 + 1),
        .keepalive_timeout = 30,
        .alpn = "http/1.1",
        .vhost_name = "sluice",
    };

    if (config->tls_cert) {
        info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
        info.ssl_cert_filepath = config->tls_cert;
        info.ssl_private_key_filepath = config->tls_key;
    }
    lws_set_log_level(0, NULL); /* it knows no levels that fit ours */
    server->context = lws_create_context(&info);
    if (!server->context)
        return failure_set(reterr, -ENOMEM, "libwebsockets cannot start");
    server->doors[DOOR_PUBLIC].vhost = lws_create_vhost(server->context, &info);
    if (!server->doors[DOOR_PUBLIC].vhost)
        return failure_set(reterr, -EINVAL, "cannot serve with certificate '%s' and key '%s'",
                           config->tls_cert ? config->tls_cert : "",
                           config->tls_key ? config->tls_key : "");
    return create_ops_vhost(server, &info, reterr);
}

int server_reload_certificate(struct server *server, struct failure *reterr)
{
    const struct config *config = server->settings.config;

    if (!server->tls)
        return 0;
    if (SSL_CTX_use_certificate_chain_file(server->tls, config->tls_cert) != 1 ||
        SSL_CTX_use_PrivateKey_file(server->tls, config->tls_key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(server->tls) != 1) {
        ERR_clear_error();
        return failure_set(reterr, -EINVAL, "cannot serve with certificate '%s' and key '%s'",
                           config->tls_cert, config->tls_key);
    }
    return 0;
}

/* --- from the doorway --- */

static void admit(void *owner, int fd, struct sl_slice head, struct buffer *body)
{
    const struct server_door *door = owner;
    struct server *server = door->server;
    struct lws *wsi;

    server->entered = door;
    server->given_body = body;
    if (head.data) {
        lws_adopt_socket_vhost_readbuf(door->vhost, fd, head.data, head.size); /* may close it */
    } else {
        wsi = lws_adopt_socket_vhost(door->vhost, fd); /* the same */
        if (wsi)
            connection_get_or_new(wsi); /* counts from its handshake on */
    }
    server->given_body = NULL;
    server->entered = &server->doors[DOOR_PUBLIC];
}

/* --- the end of a turn --- */

/* The descriptor's twin keeps the connection open when libwebsockets closes its own. */
static int keep_socket(struct connection *connection)
{
    const struct server *server = connection->server;

    if (!connection->may_serve_again || (server->is_draining && !server->has_successor))
        return -1;
    return fcntl(connection->fd, F_DUPFD_CLOEXEC, 0);
}

static void close_now(struct connection *connection)
{
    struct server *server = connection->server;
    /* Over TLS a stream that was ended properly deserves a proper goodbye there, too. */
    enum lws_close_status how = connection->is_tls && connection->stage == CONNECTION_LEFT
                                    ? LWS_CLOSE_STATUS_NOSTATUS
                                    : LWS_CLOSE_STATUS_NOSTATUS_CONTEXT_DESTROY;
    int fd = keep_socket(connection);

    if (connection->doom == DOOM_BROKEN && connection->stage != CONNECTION_LEFT)
        metric_add(server->settings.metrics, METRIC_BROKEN, 1);
    lws_close_free_wsi(connection->wsi, how, "doomed");
    if (fd >= 0)
        doorway_welcome_back(connection->door->doorway, fd);
}

static void finish_turn(struct connection *connection)
{
    if (connection->doom == DOOM_NONE)
        http_output_settle(connection);
    else if (connection->doom != DOOM_FAREWELL)
        close_now(connection);
    else if (connection->stage == CONNECTION_LEAVING)
        connection_begin_close(connection);
    else
        connection_take_leave(connection);
}

static void drain_done(struct server *server)
{
    void (*drained)(void *owner) = server->drained;

    uv_timer_stop(server->drain_timer);
    server->drained = NULL;
    if (drained)
        drained(server->drain_owner);
}

static bool doors_are_busy(const struct server *server)
{
    for (unsigned i = 0; i < DOOR_COUNT; i++) {
        const struct doorway *doorway = server->doors[i].doorway;

        if (doorway && doorway_is_busy(doorway, server->has_successor))
            return true;
    }
    return false;
}

static void on_turn_end(uv_prepare_t *prepare)
{
    struct server *server = prepare->data;
    struct list_node *node;

    deliver_turn_end(server->settings.deliver);
    while ((node = list_first(&server->scheduled))) {
        struct connection *connection = LIST_OWNER(node, struct connection, scheduled);

        list_remove(&server->scheduled, node);
        finish_turn(connection);
    }
    if (server->is_draining && list_is_empty(&server->connections) && !doors_are_busy(server))
        drain_done(server);
}

static void drain_connections(struct server *server)
{
    LIST_EACH(&server->connections, node)
    connection_drain(LIST_OWNER(node, struct connection, node));
}

/* A queue may be empty at last because the socket took it, or the log was read to its end, or the
 * reader's lists are known: looking at all of them now and then is simpler than being told. */
static void on_drain_look(uv_timer_t *timer)
{
    struct server *server = timer->data;
    uint64_t spent_ms = uv_now(server->settings.loop) - server->drain_began_ms;

    if (spent_ms >= server->drain_timeout_ms) {
        log_warn("drain_timeout", "connections_left=%zu", server->connections.count);
        drain_done(server);
        return;
    }
    server->hurries = spent_ms >= server->drain_timeout_ms / 5 * 4;
    drain_connections(server);
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
    for (unsigned i = 0; i < DOOR_COUNT; i++) {
        if (server->doors[i].doorway)
            doorway_stop(server->doors[i].doorway, !has_successor);
    }
    deliver_flush_all(server->settings.deliver);
    drain_connections(server);
    uv_timer_start(server->drain_timer, on_drain_look,
                   timeout_ms < DRAIN_LOOK_MS ? timeout_ms : DRAIN_LOOK_MS, DRAIN_LOOK_MS);
}

/* --- life --- */

void server_set_ready(struct server *server, bool ready)
{
    server->is_ready = ready;
}

static void free_handle(uv_handle_t *handle)
{
    mem_free(handle);
}

static void replace(void *owner, admission_ticket ticket)
{
    struct server *server = owner;

    if (server->by_ticket[ticket])
        connection_evict(server->by_ticket[ticket], FAREWELL_REPLACED);
}

static void on_replaced(uv_poll_t *watch, int status, int events)
{
    struct server *server = watch->data;

    (void)status;
    (void)events;
    admission_take_replaced(server->settings.admission, server->settings.worker, replace, server);
}

static int watch_replaced(struct server *server)
{
    struct admission *admission = server->settings.admission;
    int r;

    server->by_ticket =
        mem_zalloc(mem_array_size(admission_size(admission), sizeof(*server->by_ticket)));
    server->replaced_watch = mem_zalloc(sizeof(*server->replaced_watch));
    if (!server->by_ticket || !server->replaced_watch)
        return -ENOMEM;
    r = uv_poll_init(server->settings.loop, server->replaced_watch,
                     admission_wake_fd(admission, server->settings.worker));
    if (r < 0) {
        mem_free(server->replaced_watch);
        server->replaced_watch = NULL;
        return r;
    }
    server->replaced_watch->data = server;
    return uv_poll_start(server->replaced_watch, UV_READABLE, on_replaced);
}

static int start_handles(struct server *server)
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
    if (survey_start(server) < 0)
        return -ENOMEM;
    return http_output_start(server);
}

static int open_doorway(struct server *server, enum door number)
{
    const struct config *config = server->settings.config;
    const struct listeners *listeners = &server->settings.doors[number];
    struct server_door *door = &server->doors[number];
    struct doorway_settings settings = {
        .loop = server->settings.loop,
        .listeners = listeners->sockets,
        .listener_count = listeners->count,
        .is_tls = config->tls_cert != NULL && number == DOOR_PUBLIC,
        .max_head_bytes = config->max_header_bytes,
        .max_body_bytes = config->max_request_bytes,
        .timeout_ms = (uint32_t)config->handshake_timeout_ms,
        .user_timeout_ms = (unsigned)config->tcp_user_timeout_ms,
        .max_pending = (unsigned)config->max_pending_handshakes,
        .metrics = server->settings.metrics,
        .admit = admit,
        .owner = door,
    };

    if (number != DOOR_PUBLIC && listeners->count == 0)
        return 0;
    door->doorway = doorway_new(&settings);
    return door->doorway ? 0 : -ENOMEM;
}

int server_new(const struct server_settings *settings, struct server **ret_server,
               struct failure *reterr)
{
    struct server *server = mem_zalloc(sizeof(*server));
    int r;

    if (!server)
        return -ENOMEM;
    server->settings = *settings;
    server->output_watch_fd = -1;
    server->random = hash_key_random().k1;
    server->entered = &server->doors[DOOR_PUBLIC];
    for (unsigned i = 0; i < DOOR_COUNT; i++)
        server->doors[i].server = server;
    list_init(&server->connections);
    list_init(&server->scheduled);
    r = start_handles(server);
    if (r == 0)
        r = watch_replaced(server);
    if (r == 0)
        r = create_context(server, reterr);
    for (unsigned i = 0; i < DOOR_COUNT && r == 0; i++)
        r = open_doorway(server, (enum door)i);
    if (r < 0) {
        server_close(server);
        server_free(server);
        return r;
    }
    *ret_server = server;
    return 0;
}

void server_open(struct server *server)
{
    for (unsigned i = 0; i < DOOR_COUNT; i++) {
        if (server->doors[i].doorway)
            doorway_open(server->doors[i].doorway);
    }
}

void server_close(struct server *server)
{
    for (unsigned i = 0; i < DOOR_COUNT; i++) {
        doorway_free(server->doors[i].doorway);
        server->doors[i].doorway = NULL;
    }
    if (server->context)
        lws_context_destroy(server->context);
    http_output_stop(server);
    if (server->replaced_watch)
        uv_close((uv_handle_t *)server->replaced_watch, free_handle);
    server->replaced_watch = NULL;
    if (server->turn_end)
        uv_close((uv_handle_t *)server->turn_end, free_handle);
    server->turn_end = NULL;
    if (server->drain_timer)
        uv_close((uv_handle_t *)server->drain_timer, free_handle);
    server->drain_timer = NULL;
    if (server->survey_timer)
        uv_close((uv_handle_t *)server->survey_timer, free_handle);
    server->survey_timer = NULL;
}

void server_free(struct server *server)
{
    if (!server)
        return;
    assert(list_is_empty(&server->connections));
    /* On a loop that is not its own libwebsockets only begins to destroy its context when told so;
     * told again, once the loop has closed its handles, it frees the memory. */
    if (server->context)
        lws_context_destroy(server->context);
    buffer_done(&server->scratch);
    buffer_done(&server->request_room);
    mem_free(server->by_ticket);
    mem_free(server);
}
