#include "gateway/transport/exchange.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "gateway/api/api.h"
#include "gateway/transport/lws_request.h"
#include "gateway/transport/pages.h"
#include "gateway/transport/respond.h"
#include "gateway/transport/server_private.h"

enum { RETRY_AFTER_S = 2 };

/* --- streams --- */

static int refuse_draining(struct http_refusal *refusal)
{
    http_refuse(refusal, 503, "draining", NULL, "this server is shutting down");
    refusal->retry_after_s = RETRY_AFTER_S;
    return -EPROTO;
}

static bool is_closing(const struct server *server)
{
    return server->is_draining && !server->has_successor;
}

int exchange_check_readiness(const struct server *server, struct http_refusal *refusal)
{
    if (server->is_ready && !is_closing(server))
        return 0;
    if (is_closing(server))
        return refuse_draining(refusal);
    http_refuse(refusal, 503, "redis_away", NULL, "the source of events is not reachable now");
    refusal->retry_after_s = RETRY_AFTER_S;
    return -EPROTO;
}

/* The peer's address without the port; empty on a unix socket. */
static struct sl_slice peer_address(const struct connection *connection, char room[static 16])
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    socklen_t size = sizeof(address);

    if (getpeername(connection->fd, &address.any, &size) < 0)
        return SL_SLICE_NONE;
    if (address.any.sa_family == AF_INET)
        return sl_slice(memcpy(room, &address.v4.sin_addr, 4), 4);
    if (address.any.sa_family == AF_INET6)
        return sl_slice(memcpy(room, &address.v6.sin6_addr, 16), 16);
    return SL_SLICE_NONE;
}

static enum admission_verdict ask_admission(struct connection *connection)
{
    struct server *server = connection->server;
    const struct config *config = server->settings.config;
    const struct admission_limits limits = {
        .streams = (uint32_t)config->max_connections,
        .per_subject = (uint32_t)config->max_connections_per_subject,
        .per_address = (uint32_t)config->max_connections_per_address,
        .replace = config->replace_oldest,
    };
    char room[16];

    return admission_enter(server->settings.admission, &limits, server->settings.worker,
                           sl_slice_str(connection->request.token.subject),
                           limits.per_address ? peer_address(connection, room) : SL_SLICE_NONE,
                           &connection->ticket);
}

/* What the front does not know: whether this server can take another stream now. */
static int check_admission(struct connection *connection, struct http_refusal *refusal)
{
    static const struct {
        enum metric metric;
        const char *code, *message;
    } rows[] = {
        [ADMISSION_FULL] = {METRIC_ADMISSION_FULL, "too_many_connections",
                            "this server has as many streams as it may"},
        [ADMISSION_SUBJECT_FULL] = {METRIC_ADMISSION_SUBJECT_FULL, "too_many_connections",
                                    "this token's subject has as many streams as it may"},
        [ADMISSION_ADDRESS_FULL] = {METRIC_ADMISSION_ADDRESS_FULL, "too_many_connections",
                                    "this address has as many streams as it may"},
    };
    struct server *server = connection->server;
    enum admission_verdict verdict;

    if (exchange_check_readiness(server, refusal) < 0)
        return -EPROTO;
    verdict = ask_admission(connection);
    if (verdict == ADMISSION_GRANTED) {
        connection->is_admitted = true;
        server->by_ticket[connection->ticket] = connection;
        return 0;
    }
    metric_add(server->settings.metrics, rows[verdict].metric, 1);
    http_refuse(refusal, 429, rows[verdict].code, NULL, "%s", rows[verdict].message);
    refusal->retry_after_s = RETRY_AFTER_S;
    return -EPROTO;
}

/* The client is not told what was wrong: so the log must say it. */
void exchange_count_token_fault(struct server *server, enum token_fault fault)
{
    uint64_t held_back;

    if (fault == TOKEN_OK)
        return;
    metric_add(server->settings.metrics, metric_at(METRIC_TOKENS_REFUSED, fault - 1), 1);
    if (log_rate_allows(&server->token_rate, uv_now(server->settings.loop), &held_back))
        log_info("token_refused", "fault=%s held_back=%" PRIu64, token_fault_name(fault),
                 held_back);
}

static int read_stream_request(struct connection *connection, enum stream_kind stream,
                               const struct http_request *http, struct http_refusal *refusal)
{
    struct server *server = connection->server;
    enum token_fault fault = TOKEN_OK;
    int r;

    r = stream_request_read(server->settings.front, stream, http, clock_wall_ms(),
                            &connection->request, refusal, &fault);
    exchange_count_token_fault(server, fault);
    if (r == -ENOMEM) {
        r = http_refuse(refusal, 503, "no_memory", NULL, "out of memory");
        refusal->retry_after_s = RETRY_AFTER_S;
    }
    if (r < 0)
        return r;
    r = check_admission(connection, refusal);
    if (r < 0)
        stream_request_done(&connection->request);
    else
        connection->has_request = true;
    return r;
}

static int begin_stream(struct connection *connection, enum stream_kind stream,
                        const struct http_request *http)
{
    struct buffer cors = BUFFER_INIT;
    struct http_refusal refusal;
    int r;

    if (read_stream_request(connection, stream, http, &refusal) < 0)
        return respond_refusal(connection, http, &refusal);
    respond_append_cors(connection, http, &cors);
    r = cors.failed ? -ENOMEM
                    : http_stream_open(connection, http->is_http_1_0, buffer_slice(&cors));
    buffer_done(&cors);
    buffer_done(&connection->incoming);
    return r < 0 ? -1 : 0;
}

/* What a path allows, for browsers that ask before they cross origins and whoever else asks. */
static int answer_options(struct connection *connection, const struct http_request *http,
                          const char *methods)
{
    struct buffer headers = BUFFER_INIT;
    int r = -1;

    buffer_append_format(&headers,
                         "Access-Control-Allow-Methods: %s\r\n"
                         "Access-Control-Allow-Headers: Authorization, Content-Type, "
                         "Idempotency-Key, Last-Event-ID\r\n"
                         "Access-Control-Max-Age: 600\r\n"
                         "Allow: %s\r\n",
                         methods, methods);
    if (!headers.failed)
        r = respond(connection, http,
                    &(struct answer){.status = 204, .headers = buffer_slice(&headers)});
    buffer_done(&headers);
    return r;
}

/* --- the API --- */

static void on_api_answer(void *owner, const struct api_answer *answer)
{
    struct connection *connection = owner;

    connection->api_request = NULL;
    if (answer->refusal)
        respond_refusal_now(connection, answer->refusal);
    else
        respond_now(connection,
                    &(struct answer){.status = answer->status,
                                     .content_type = answer->body.data ? "application/json" : NULL,
                                     .headers = answer->headers,
                                     .body = answer->body});
}

static int begin_api(struct connection *connection, const struct http_request *http)
{
    struct server *server = connection->server;
    enum token_fault fault = TOKEN_OK;
    struct http_refusal refusal;
    int r;

    if (is_closing(server)) {
        refuse_draining(&refusal);
        return respond_refusal(connection, http, &refusal);
    }
    r = api_begin(server->settings.api, http, on_api_answer, connection, &connection->api_request,
                  &refusal, &fault);
    exchange_count_token_fault(server, fault);
    return r < 0 ? respond_refusal(connection, http, &refusal) : respond_later(connection, http);
}

/* --- where a request goes --- */

static int route(struct connection *connection, const struct http_request *http)
{
    const char *api_methods = api_allow(http->path);
    enum stream_kind stream;

    if (api_methods)
        return http->method == HTTP_OPTIONS ? answer_options(connection, http, api_methods)
                                            : begin_api(connection, http);
    if (stream_path(http->path, &stream)) {
        if (http->method == HTTP_OPTIONS)
            return answer_options(connection, http, "GET, POST, OPTIONS");
        if (http->method != HTTP_GET && http->method != HTTP_POST)
            return respond_method_refusal(connection, http, "GET, POST, OPTIONS");
        return begin_stream(connection, stream, http);
    }
    return pages_answer(connection, http);
}

/* -1: no such header or not a number (the doorway has refused those on first requests). */
static int64_t content_length(struct lws *wsi)
{
    char text[24], *end;
    long long length;

    if (lws_hdr_copy(wsi, text, sizeof(text), WSI_TOKEN_HTTP_CONTENT_LENGTH) <= 0)
        return -1;
    length = strtoll(text, &end, 10);
    return *end == '\0' && length >= 0 ? length : -1;
}

static bool may_have_body(enum http_method method)
{
    return method == HTTP_PUT || method == HTTP_PATCH;
}

static int wait_for_body(struct connection *connection)
{
    const struct config *config = connection->server->settings.config;

    connection->deadline_ms =
        uv_now(connection->server->settings.loop) + config->handshake_timeout_ms;
    connection_arm(connection);
    return 0;
}

int exchange_begin(struct connection *connection)
{
    struct server *server = connection->server;
    struct http_refusal refusal;
    struct http_request http;
    int64_t length = content_length(connection->wsi);

    connection->is_idle = false;
    if (lws_request_read(connection->wsi, false, &server->request_room, &http) < 0)
        return -1;
    if (lws_request_check(connection->wsi, &refusal) < 0)
        return respond_refusal(connection, &http, &refusal);
    if (http.method == HTTP_POST && length < 0) {
        http_refuse(&refusal, 411, "length_required", NULL, "a request body needs Content-Length");
        return respond_refusal(connection, &http, &refusal);
    }
    if (http.method == HTTP_GET && (length > 0 || connection->incoming.size > 0)) {
        http_refuse(&refusal, 400, "bad_request", NULL, "a GET request has no body");
        return respond_refusal(connection, &http, &refusal);
    }
    if (length > (int64_t)server->settings.config->max_request_bytes) {
        http_refuse(&refusal, 413, "body_too_large", NULL,
                    "the request body may have %" PRIu64 " bytes",
                    server->settings.config->max_request_bytes);
        return respond_refusal(connection, &http, &refusal);
    }
    if (length > 0 && respond_was_sent_ahead(connection)) {
        http_refuse(&refusal, 503, "sent_ahead", NULL,
                    "over TLS a request with a body waits for the answer before it");
        refusal.retry_after_s = RETRY_AFTER_S;
        return respond_refusal(connection, &http, &refusal);
    }
    connection->is_whole = length <= 0;
    connection->body_left = length > 0 ? (size_t)length : 0;
    /* libwebsockets announces the end of every POST's body, even of an empty one. */
    if (length > 0 || http.method == HTTP_POST)
        return wait_for_body(connection);
    http.body = buffer_slice(&connection->incoming);
    /* Without a length it expects a PUT or PATCH to go on for ever. */
    http.wants_close = http.wants_close || (length < 0 && may_have_body(http.method));
    return route(connection, &http);
}

static int route_with_body(struct connection *connection)
{
    struct http_request http;

    if (lws_request_read(connection->wsi, false, &connection->server->request_room, &http) < 0)
        return -1;
    http.body = buffer_slice(&connection->incoming);
    return route(connection, &http);
}

/* libwebsockets 4.3 takes all that it has read for the body, with what the client has sent ahead,
 * and then waits for the end of it for ever. So the request is complete now, and the last one that
 * this connection can have: what was behind it is lost. */
static int end_with_body(struct connection *connection)
{
    connection_schedule(
        connection); /* undoes the time limit that libwebsockets sets for its wait */
    return route_with_body(connection);
}

int exchange_body(struct connection *connection, struct sl_slice part)
{
    size_t size = part.size < connection->body_left ? part.size : connection->body_left;

    if (connection->stage != CONNECTION_REQUEST)
        return 0; /* a GET with a body, already streaming */
    buffer_append(&connection->incoming, part.data, size);
    connection->body_left -= size;
    if (connection->incoming.failed)
        return -1;
    return size < part.size ? end_with_body(connection) : 0;
}

/* libwebsockets may come here again for input after the body: a stream does not begin twice. */
int exchange_body_complete(struct connection *connection)
{
    if (connection->stage != CONNECTION_REQUEST)
        return 0;
    connection->is_whole = true;
    return route_with_body(connection);
}

/* What libwebsockets would hang up on without a word. */
static int check_handshake(struct connection *connection, struct http_refusal *refusal)
{
    struct lws *wsi = connection->wsi;
    char value[128];

    if (lws_hdr_copy(wsi, value, sizeof(value), WSI_TOKEN_UPGRADE) < 0 ||
        strcasecmp(value, "websocket") != 0)
        return http_refuse(refusal, 400, "bad_request", NULL, "only websocket may be upgraded to");
    if (lws_hdr_copy(wsi, value, sizeof(value), WSI_TOKEN_CONNECTION) < 0 ||
        !strcasestr(value, "upgrade"))
        return http_refuse(refusal, 400, "bad_request", NULL,
                           "a WebSocket handshake needs Connection: Upgrade");
    if (lws_hdr_copy(wsi, value, sizeof(value), WSI_TOKEN_VERSION) < 0 || strcmp(value, "13") != 0)
        return http_refuse(refusal, 426, "websocket_version", NULL,
                           "Sec-WebSocket-Version must be 13");
    if (lws_hdr_total_length(wsi, WSI_TOKEN_KEY) != 24)
        return http_refuse(refusal, 400, "bad_request", NULL,
                           "Sec-WebSocket-Key is missing or malformed");
    return 0;
}

int exchange_upgrade(struct connection *connection)
{
    struct server *server = connection->server;
    struct http_refusal refusal;
    struct http_request http;
    enum stream_kind stream;

    if (lws_request_read(connection->wsi, true, &server->request_room, &http) < 0)
        return -1;
    if (lws_request_check(connection->wsi, &refusal) < 0) {
        respond_refusal(connection, &http, &refusal);
        return -1;
    }
    if (!stream_path(http.path, &stream))
        http_refuse(&refusal, 404, "not_found", NULL, "there is no stream at this path");
    else if (http.method != HTTP_GET)
        return respond_method_refusal(connection, &http, "GET");
    else if (!origin_is_allowed(server->settings.origins, http.origin, http.host))
        http_refuse(&refusal, 403, "origin_not_allowed", NULL,
                    "pages from this origin may not connect");
    else if (check_handshake(connection, &refusal) == 0 &&
             read_stream_request(connection, stream, &http, &refusal) == 0)
        return 0;
    respond_refusal(connection, &http, &refusal);
    return -1;
}
