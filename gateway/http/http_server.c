/* http_server.c - the HTTP connections of a worker: accepting, timeouts, draining, closing.
 *
 * All connections are in one list, and those that wait are also in a list for what they wait for
 * (http_waiting.h), with the times and limits set here. While the server drains, a connection that
 * has just been accepted counts as busy for a moment, because its first request may be under way,
 * and one in its TLS handshake until its time is over. If there is a successor, all connections
 * count as busy until they end. */
#include "gateway/http/http_server.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "gateway/http/http_connection.h"

enum {
    SEND_MS = 30000, /* for the peer to read some of a response */
    LINGER_MS = 2000,
    NEW_MS = 100,         /* between accepting a connection and its first request, on most
                             networks */
    BODIES_MAX = 64 << 20 /* bytes of all large bodies being received */
};

static void on_overdue(struct http_waiter *waiter, enum http_wait wait)
{
    http_connection_time_out(LIST_OWNER(waiter, struct http_connection, waiter), wait);
}

static void on_dropped(struct http_waiter *waiter)
{
    http_connection_end(LIST_OWNER(waiter, struct http_connection, waiter));
}

/* --- creating and closing --- */

static void begin(struct http_server *server, struct http_connection *connection)
{
    list_append(&server->connections, &connection->node);
    metric_add(server->settings.metrics, METRIC_CONNECTIONS, 1);
    metric_add(server->settings.metrics, METRIC_CONNECTIONS_ACCEPTED, 1);
    http_connection_start(connection);
}

static struct http_connection *new_connection(struct http_server *server, unsigned listener)
{
    struct http_connection *connection = mem_zalloc(sizeof(*connection));

    if (!connection)
        return NULL;
    connection->server = server;
    connection->listener = (uint8_t)listener;
    connection->wire.fd = -1;
    return connection;
}

static void accept_plainly(struct http_server *server, int fd, bool with_tls, unsigned listener)
{
    struct http_connection *connection = new_connection(server, listener);

    if (!connection) {
        close(fd);
        return;
    }
    if (wire_open(server->settings.wires, &connection->wire, fd, with_tls, &http_wire_callbacks) <
        0) {
        mem_free(connection);
        return;
    }
    begin(server, connection);
}

/* --- behind a PROXY header --- */

static void report(struct http_server *server, const struct ip_address *peer, enum metric metric,
                   const char *why)
{
    char room[IP_ADDRESS_TEXT_SIZE];
    uint64_t held_back;

    metric_add(server->settings.metrics, metric, 1);
    if (log_rate_allows(&server->proxy_rate, uv_now(server->settings.loop), &held_back))
        log_warn("no_proxy_header", "peer=%s why=\"%s\" held_back=%" PRIu64,
                 ip_address_print(peer, room), why, held_back);
}

/* The header has been read: what follows comes from the client. */
static int pass_gate(struct http_connection *connection, const struct proxy_header *header)
{
    struct proxy_gate *gate = connection->gate;
    int r;

    connection->gate = NULL;
    r = wire_open(connection->server->settings.wires, &connection->wire, proxy_gate_take(gate),
                  connection->with_tls, &http_wire_callbacks);
    connection->stage = HTTP_STAGE_HEAD;
    connection->is_gated = true;
    if (r == 0)
        wire_set_client(&connection->wire, &header->client, header->is_secure);
    return r;
}

static void on_gate(void *owner)
{
    struct http_connection *connection = owner;
    struct proxy_header header;
    const char *why = NULL;
    int r;

    r = proxy_gate_read(connection->gate, &header, &why);
    if (r == 1)
        r = pass_gate(connection, &header);
    if (r == -EPROTO)
        report(connection->server, proxy_gate_peer(connection->gate), METRIC_PROXY_MALFORMED, why);
    if (r < 0)
        http_connection_end(connection);
}

static void accept_at_gate(struct http_server *server, int fd, bool with_tls, unsigned listener)
{
    struct http_connection *connection = new_connection(server, listener);
    struct proxy_gate *gate = proxy_gate_new(server->settings.loop, fd, on_gate, connection);
    const struct ip_address *peer = gate ? proxy_gate_peer(gate) : NULL;
    const struct client_trust *trust = server->settings.trust;
    bool is_trusted = gate && trust && ip_networks_contain(&trust->proxies, peer);

    if (gate && !is_trusted)
        report(server, peer, METRIC_PROXY_UNTRUSTED, "not from one of trusted-proxies");
    if (!connection || !is_trusted) {
        proxy_gate_free(gate);
        mem_free(connection);
        return;
    }
    connection->gate = gate;
    connection->with_tls = with_tls;
    connection->stage = HTTP_STAGE_GATE;
    begin(server, connection);
    if (connection->stage == HTTP_STAGE_GATE)
        on_gate(connection);
}

void http_server_accept(struct http_server *server, int fd, bool with_tls, bool with_proxy,
                        unsigned listener)
{
    if (with_proxy)
        accept_at_gate(server, fd, with_tls, listener);
    else
        accept_plainly(server, fd, with_tls, listener);
}

void http_server_drain(struct http_server *server, bool has_successor)
{
    server->is_draining = true;
    server->has_successor = has_successor;
    if (has_successor)
        return;
    LIST_EACH(&server->connections, node)
    {
        struct http_connection *connection = LIST_OWNER(node, struct http_connection, node);

        if (connection->is_served && http_connection_is_silent(connection))
            http_connection_end(connection);
    }
}

/* Its first request may be under way. */
static bool is_new(const struct http_connection *connection)
{
    const struct http_server *server = connection->server;
    uint64_t left_ms = connection->waiter.deadline.due_ms - uv_now(server->settings.loop);

    return !connection->is_served && left_ms + NEW_MS > server->settings.timeout_ms;
}

bool http_server_is_busy(const struct http_server *server)
{
    if (server->has_successor)
        return !list_is_empty(&server->connections);
    LIST_EACH(&server->connections, node)
    {
        const struct http_connection *connection = LIST_OWNER(node, struct http_connection, node);

        if (!http_connection_is_silent(connection) || is_new(connection) ||
            wire_has_begun(&connection->wire))
            return true;
    }
    return false;
}

static void free_handle(uv_handle_t *handle)
{
    mem_free(handle);
}

struct http_server *http_server_new(const struct http_server_settings *settings)
{
    const struct http_waiting_settings waiting = {
        .loop = settings->loop,
        .metrics = settings->metrics,
        .waits = {[HTTP_WAIT_PENDING] = {settings->timeout_ms, settings->max_pending},
                  [HTTP_WAIT_IDLE] = {settings->timeout_ms, settings->max_idle},
                  [HTTP_WAIT_SENDING] = {SEND_MS, SIZE_MAX},
                  [HTTP_WAIT_LINGERING] = {LINGER_MS, settings->max_lingering}},
        .overdue = on_overdue,
        .dropped = on_dropped,
    };
    struct http_server *server = mem_zalloc(sizeof(*server));

    if (!server)
        return NULL;
    server->settings = *settings;
    list_init(&server->connections);
    list_init(&server->put_off);
    http_bodies_init(&server->bodies, BODIES_MAX);
    server->next_turn = mem_zalloc(sizeof(*server->next_turn));
    if (!server->next_turn || http_waiting_init(&server->waiting, &waiting) < 0) {
        mem_free(server->next_turn);
        mem_free(server);
        return NULL;
    }
    uv_idle_init(settings->loop, server->next_turn);
    server->next_turn->data = server;
    return server;
}

void http_server_close(struct http_server *server)
{
    if (!server->next_turn)
        return;
    LIST_EACH(&server->connections, node)
    http_connection_end(LIST_OWNER(node, struct http_connection, node));
    http_waiting_done(&server->waiting);
    uv_close((uv_handle_t *)server->next_turn, free_handle);
    server->next_turn = NULL;
}

void http_server_free(struct http_server *server)
{
    if (!server)
        return;
    assert(list_is_empty(&server->connections) && !server->next_turn);
    buffer_done(&server->output);
    buffer_done(&server->scratch);
    mem_free(server);
}
