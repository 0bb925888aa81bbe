/* routes.c - dispatches requests to the streams, the API, or the other endpoints.
 *
 * The token is checked first: if the body of a request has not arrived yet, before a byte of it is
 * read, so that clients without a token cannot make the server store anything. For cross-origin
 * requests of browsers, headers on every response say whether the page may read it. Usage limits
 * are applied where the token is checked; what they need is attached to the request. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "gateway/api/api.h"
#include "gateway/dialects/dialects.h"
#include "gateway/front/session_cookie.h"
#include "gateway/front/use_check.h"
#include "gateway/http/websocket_handshake.h"
#include "gateway/serve/server_private.h"
#include "gateway/streams/connections.h"
#include "gateway/streams/dialect_connection_query.h"

#define STREAM_METHODS "GET, POST, OPTIONS"

#define ESTIMATE_PATH "/v1/filters/estimate"
#define TICKETS_PATH  "/v1/tickets"
#define USAGE_PATH    "/v1/usage"
#define USAGE_METHODS "GET, HEAD, OPTIONS"

#define ASKED_METHODS "POST, OPTIONS" /* of both */

/* --- refusals --- */

static int refuse_method(const char *allow, struct http_refusal *refusal)
{
    http_refuse(refusal, 405, "method_not_allowed", NULL, "this path takes %s", allow);
    refusal->allow = allow;
    return -EPROTO;
}

/* If POST is valid at this path, a body needs a length; otherwise the method is what is wrong. */
static int refuse_length(struct http_refusal *refusal)
{
    return http_refuse(refusal, 411, "length_required", NULL,
                       "a request body needs Content-Length");
}

static int refuse_draining(struct http_refusal *refusal)
{
    http_refuse(refusal, 503, "draining", NULL, "this server is shutting down");
    refusal->retry_after_s = HTTP_RETRY_AFTER_S;
    return -EPROTO;
}

/* --- cross-origin requests --- */

/* Appends headers that tell a browser whether the page may read the response. */
static void append_cors(const struct server *server, const struct http_request *request,
                        struct buffer *headers)
{
    if (!request->origin.data)
        return;
    buffer_append_str(headers, "Vary: Origin\r\n");
    if (!origin_is_allowed(server->settings.origins, request->origin, request->host))
        return;
    buffer_append_format(headers,
                         "Access-Control-Allow-Origin: %.*s\r\n"
                         "Access-Control-Expose-Headers: Idempotency-Replayed, Location, "
                         "RateLimit, RateLimit-Policy, Retry-After, Sluice-Connection, "
                         "WWW-Authenticate\r\n",
                         SL_SLICE_ARG(request->origin));
    if (origin_is_listed(server->settings.origins, request->origin))
        buffer_append_str(headers, "Access-Control-Allow-Credentials: true\r\n");
}

/* Answers OPTIONS, for browsers before a cross-origin request and for other clients. Any header is
 * allowed; unknown ones are ignored. */
static void answer_options(struct http_connection *connection, const struct http_request *request,
                           const char *methods)
{
    struct buffer headers = BUFFER_INIT;

    buffer_append_format(&headers,
                         "Access-Control-Allow-Methods: %s\r\n"
                         "Access-Control-Allow-Headers: %.*s\r\n"
                         "Access-Control-Max-Age: 600\r\n"
                         "Allow: %s\r\n",
                         methods, SL_SLICE_ARG(origin_allowed_headers(request->wanted_headers)),
                         methods);
    http_answer(connection,
                &(struct http_answer){.status = 204, .headers = buffer_slice(&headers)});
    buffer_done(&headers);
}

/* --- the API --- */

static void on_api_answer(void *owner, const struct api_answer *answer)
{
    struct http_connection *connection = owner;

    if (answer->act->operation)
        server_audit_admin(http_connection_owner(connection), connection, answer->act,
                           answer->refusal ? answer->refusal->status : answer->status);
    if (answer->refusal)
        server_refuse(http_connection_owner(connection), connection, answer->refusal);
    else
        http_answer(connection, &(struct http_answer){
                                    .status = answer->status,
                                    .content_type = answer->body.data ? "application/json" : NULL,
                                    .headers = answer->headers,
                                    .body = answer->body,
                                });
}

static void abandon_api(void *request)
{
    api_abandon(request);
}

static void begin_api(struct server *server, struct http_connection *connection,
                      const struct http_request *request)
{
    enum token_fault fault = TOKEN_OK;
    struct api_request *api_request;
    struct http_refusal refusal;
    int r;

    if (server->is_draining && !server->has_successor)
        r = refuse_draining(&refusal);
    else
        r = api_begin(server->settings.api, request, on_api_answer, connection, &api_request,
                      &refusal, &fault);
    server_count_token_fault(server, connection, fault);
    if (r < 0)
        server_refuse(server, connection, &refusal);
    else
        http_answer_later(connection, abandon_api, api_request);
}

/* --- streams --- */

static int check_upgrade(const struct server *server, const struct http_head *head,
                         struct http_refusal *refusal)
{
    const struct http_request *request = &head->request;

    if (request->method != HTTP_GET)
        return refuse_method("GET", refusal);
    if (!origin_is_allowed(server->settings.origins, request->origin, request->host))
        return http_refuse(refusal, 403, "origin_not_allowed", NULL,
                           "pages from this origin may not connect");
    return websocket_handshake_check(head, refusal);
}

static void refuse_late(struct http_connection *connection, const struct http_refusal *refusal)
{
    server_refuse(http_connection_owner(connection), connection, refusal);
}

static int begin_checked(struct server *server, struct http_connection *connection,
                         enum stream_kind kind, const struct http_head *head,
                         struct http_refusal *refusal, enum token_fault *ret_fault)
{
    struct sl_slice ticket =
        kind == STREAM_PAST_COUNTS ? SL_SLICE_NONE : stream_request_ticket(&head->request);

    if (!ticket.data)
        return streams_begin(server->streams, connection, kind, head, refusal, ret_fault);
    if (use_check_address(head->request.use, refusal) < 0)
        return -EPROTO;
    return streams_begin_with_ticket(
        server->streams, connection, kind, head, ticket,
        session_cookie_permitted(server->settings.origins, &head->request), refuse_late, refusal);
}

static void begin_stream(struct server *server, struct http_connection *connection,
                         enum stream_kind kind, const struct http_head *head)
{
    const struct http_request *request = &head->request;
    enum token_fault fault = TOKEN_OK;
    struct http_refusal refusal;
    int r = 0;

    if (request->is_upgrade && kind == STREAM_PAST_COUNTS)
        r = http_refuse(&refusal, 400, "bad_request", NULL,
                        "this path is no stream; there is /v1/stream/counts");
    else if (request->is_upgrade)
        r = check_upgrade(server, head, &refusal);
    else if (head->websocket_key.data)
        r = http_refuse(&refusal, 426, "upgrade_required", NULL,
                        "a WebSocket handshake without Upgrade: websocket: does a proxy not pass "
                        "the headers Upgrade and Connection on?");
    else if (kind == STREAM_PAST_COUNTS && request->method == HTTP_HEAD)
        r = 0;
    else if (request->method != HTTP_GET && request->method != HTTP_POST)
        r = refuse_method(STREAM_METHODS, &refusal);
    if (r == 0)
        r = begin_checked(server, connection, kind, head, &refusal, &fault);
    server_count_token_fault(server, connection, fault);
    if (r < 0)
        server_refuse(server, connection, &refusal);
}

/* --- estimates, tickets --- */

static bool is_estimate(const struct http_request *request)
{
    return sl_slice_is(request->path, ESTIMATE_PATH);
}

/* Requests that the streams answer, but which are not streams. */
static bool is_asked(const struct http_request *request)
{
    return is_estimate(request) || sl_slice_is(request->path, TICKETS_PATH);
}

static void begin_asked(struct server *server, struct http_connection *connection,
                        const struct http_head *head)
{
    enum token_fault fault = TOKEN_OK;
    struct http_refusal refusal;
    int r;

    if (head->request.method != HTTP_POST)
        r = refuse_method(ASKED_METHODS, &refusal);
    else if (server->is_draining && !server->has_successor)
        r = refuse_draining(&refusal);
    else if (is_estimate(&head->request))
        r = streams_estimate(server->streams, connection, head, &refusal, &fault);
    else
        r = streams_make_ticket(server->streams, connection, head, refuse_late, &refusal, &fault);
    server_count_token_fault(server, connection, fault);
    if (r < 0)
        server_refuse(server, connection, &refusal);
}

/* --- usage --- */

static bool is_usage(const struct http_request *request)
{
    return sl_slice_is(request->path, USAGE_PATH);
}

static void begin_usage(struct server *server, struct http_connection *connection,
                        const struct http_request *request)
{
    enum token_fault fault = TOKEN_OK;
    struct http_refusal refusal;
    int r;

    if (request->method == HTTP_GET || request->method == HTTP_HEAD)
        r = usage_answer(server, connection, request, &refusal, &fault);
    else
        r = refuse_method(USAGE_METHODS, &refusal);
    server_count_token_fault(server, connection, fault);
    if (r < 0)
        server_refuse(server, connection, &refusal);
}

/* --- dialects --- */

struct dialect_match {
    const struct dialect *dialect; /* NULL: not a path of a dialect */
    const struct dialect_route *route;
};

static struct dialect_match find_dialect(const struct server *server, struct sl_slice path)
{
    struct dialect_match match = {0};

    match.route = dialect_find(&dialects, server->settings.front->dialects, path, &match.dialect);
    return match;
}

/* 4 or 16 bytes; empty: a Unix socket. */
static bool is_loopback(struct sl_slice address)
{
    static const char v6[16] = {[15] = 1};

    if (address.size == 16)
        return memcmp(address.data, v6, sizeof(v6)) == 0;
    return address.size == 0 || address.data[0] == 127;
}

/* Whether nobody else can read the request. */
static bool is_private(const struct server *server, const struct http_connection *connection)
{
    char room[WIRE_ADDRESS_SIZE];
    const struct wire *wire = http_connection_wire(connection);

    return server->settings.front->takes_plain_oauth || wire->is_secure ||
           is_loopback(wire_client_address(wire, room));
}

static void refuse_in(struct http_connection *connection, const struct dialect *dialect,
                      const struct http_request *request, const struct http_refusal *refusal)
{
    struct buffer body = BUFFER_INIT, headers = BUFFER_INIT;
    struct http_answer answer = {.status = refusal->status};

    http_refusal_append_headers(refusal, &headers);
    if (refusal->status == 429 && request->use)
        use_check_tell_reset(request->use, refusal->retry_after_s);
    dialect->refuse(request, refusal, &body, &answer);
    if (body.failed || headers.failed) {
        http_answer_refusal(connection, refusal);
    } else {
        answer.body = buffer_slice(&body);
        answer.headers = buffer_slice(&headers);
        http_answer(connection, &answer);
    }
    buffer_done(&body);
    buffer_done(&headers);
}

static void refuse_late_in(struct http_connection *connection, const struct dialect *dialect,
                           const struct http_refusal *refusal)
{
    server_count_refusal(http_connection_owner(connection), connection, refusal);
    refuse_in(connection, dialect, &(struct http_request){.query = SL_SLICE_NONE}, refusal);
}

static int answer_in(struct server *server, struct http_connection *connection,
                     const struct dialect_match *match, const struct http_request *request,
                     struct http_refusal *refusal, enum token_fault *ret_fault)
{
    struct buffer room = BUFFER_INIT, body = BUFFER_INIT;
    const struct dialect_request asking = {.http = request,
                                           .front = server->settings.front,
                                           .times = {.now_ms = clock_wall_ms()},
                                           .is_secure = http_connection_wire(connection)->is_secure,
                                           .fault = ret_fault,
                                           .is_private = is_private(server, connection),
                                           .room = &room};
    struct http_answer answer = {.status = 200, .content_type = "application/json; charset=utf-8"};
    int r = match->route->answer(&asking, &body, &answer, refusal);

    if (r == -ENOMEM || (r == 0 && body.failed)) {
        r = http_refuse(refusal, 503, "no_memory", NULL, "out of memory");
    } else if (r == 0) {
        answer.body = buffer_slice(&body);
        http_answer(connection, &answer);
    }
    buffer_done(&body);
    buffer_done(&room);
    return r;
}

/* 0; -EPROTO: the route does not support this kind of request. */
static int check_way(const struct server *server, const struct dialect_route *route,
                     const struct http_head *head, struct http_refusal *refusal)
{
    const struct http_request *request = &head->request;

    if (head->lacks_length && request->method == HTTP_POST)
        return refuse_length(refusal);
    if (!(route->methods & 1u << request->method) || (request->is_upgrade && !route->open))
        return refuse_method(route->allow, refusal);
    if (request->is_upgrade)
        return check_upgrade(server, head, refusal);
    if (route->read || route->answer || route->rules || route->connections)
        return 0;
    return http_refuse(refusal, 426, "upgrade_required", NULL, "this path is for WebSockets only");
}

static void begin_dialect(struct server *server, struct http_connection *connection,
                          const struct dialect_match *match, const struct http_head *head)
{
    const struct http_request *request = &head->request;
    enum token_fault fault = TOKEN_OK;
    struct http_refusal refusal;
    int r;

    if (request->method == HTTP_OPTIONS) {
        answer_options(connection, request, match->route->allow);
        return;
    }
    r = check_way(server, match->route, head, &refusal);
    if (r == 0 && server->is_draining && !server->has_successor)
        r = refuse_draining(&refusal);
    else if (r == 0 && match->route->answer)
        r = answer_in(server, connection, match, request, &refusal, &fault);
    else if (r == 0 && match->route->rules)
        r = streams_rules(server->streams, connection, match->dialect, match->route, head,
                          refuse_late_in, &refusal, &fault);
    else if (r == 0 && match->route->connections)
        r = dialect_connection_query_begin(server->streams, connection, match->dialect,
                                           match->route, head, refuse_late_in, &refusal, &fault);
    else if (r == 0)
        r = streams_begin_dialect(server->streams, connection, match->dialect, match->route,
                                  is_private(server, connection), head, refuse_late_in, &refusal,
                                  &fault);
    server_count_token_fault(server, connection, fault);
    if (r == 0)
        return;
    server_count_refusal(server, connection, &refusal);
    refuse_in(connection, match->dialect, request, &refusal);
}

/* --- connections --- */

static void begin_connections(struct server *server, struct http_connection *connection,
                              const struct http_head *head)
{
    enum token_fault fault = TOKEN_OK;
    struct http_refusal refusal;
    int r;

    if (server->is_draining && !server->has_successor)
        r = refuse_draining(&refusal);
    else
        r = streams_connections(server->streams, connection, head, &refusal, &fault);
    server_count_token_fault(server, connection, fault);
    if (r < 0)
        server_refuse(server, connection, &refusal);
}

/* --- by path --- */

static void route(struct server *server, struct http_connection *connection,
                  const struct dialect_match *match, const struct http_head *head)
{
    const struct http_request *request = &head->request;
    const char *api_methods = api_allow(request->path);
    const char *connection_methods = connections_allow(request->path);
    struct http_refusal refusal;
    enum stream_kind kind;
    bool is_stream = stream_path(request->path, &kind);
    bool takes_post =
        api_methods ? strstr(api_methods, "POST") != NULL : is_stream || is_asked(request);

    if (match->dialect) {
        begin_dialect(server, connection, match, head);
    } else if (head->lacks_length && takes_post && !request->is_upgrade) {
        refuse_length(&refusal);
        server_refuse(server, connection, &refusal);
    } else if (request->is_upgrade && !is_stream) {
        endpoints_refuse_path(server, connection, request->path, &refusal);
        server_refuse(server, connection, &refusal);
    } else if (api_methods && request->method == HTTP_OPTIONS) {
        answer_options(connection, request, api_methods);
    } else if (api_methods) {
        begin_api(server, connection, request);
    } else if (connection_methods && request->method == HTTP_OPTIONS) {
        answer_options(connection, request, connection_methods);
    } else if (connection_methods) {
        begin_connections(server, connection, head);
    } else if (is_asked(request) && request->method == HTTP_OPTIONS) {
        answer_options(connection, request, ASKED_METHODS);
    } else if (is_asked(request)) {
        begin_asked(server, connection, head);
    } else if (is_usage(request) && request->method == HTTP_OPTIONS) {
        answer_options(connection, request, USAGE_METHODS);
    } else if (is_usage(request)) {
        begin_usage(server, connection, request);
    } else if (is_stream && request->method == HTTP_OPTIONS && !request->is_upgrade) {
        answer_options(connection, request, STREAM_METHODS);
    } else if (is_stream) {
        begin_stream(server, connection, kind, head);
    } else {
        endpoints_answer(server, connection, request);
    }
}

/* --- usage limits --- */

/* Requests that need no token are not limited. */
static enum use_asks asks_of(const struct dialect_match *match, const struct http_request *request)
{
    enum stream_kind kind;

    if (match->dialect)
        return match->route->read || match->route->open ? USE_ASKS_STREAM : USE_ASKS_REQUEST;
    if (stream_path(request->path, &kind) && kind != STREAM_PAST_COUNTS)
        return USE_ASKS_STREAM;
    return sl_slice_starts_with(request->path, SL_SLICE("/v1/")) ? USE_ASKS_REQUEST
                                                                 : USE_ASKS_LATER;
}

/* `room` must outlive the check. */
static struct use_check use_check_of(const struct server *server,
                                     struct http_connection *connection,
                                     const struct dialect *dialect, enum use_asks asks,
                                     char room[static WIRE_ADDRESS_SIZE])
{
    const struct front_settings *front = server->settings.front;

    return (struct use_check){
        .uses = server->settings.uses,
        .of_subject = &front->subject_uses,
        .of_address = &front->address_uses,
        .asks = asks,
        .address = use_prefix(wire_client_address(http_connection_wire(connection), room)),
        .times = {clock_monotonic_ms(), clock_wall_ms()},
        .headers = http_connection_headers(connection),
        .refused = USE_COUNT,
        .tells_x = dialect && dialect->tells_rate_limits,
    };
}

static void count_use_refused(const struct server *server, const struct use_check *check)
{
    if (check->refused != USE_COUNT)
        metric_add(server->settings.metrics, metric_at(METRIC_USE_REFUSED, check->refused), 1);
}

static void handle(void *owner, struct http_connection *connection, const struct http_head *head)
{
    struct server *server = owner;
    const struct dialect_match match = find_dialect(server, head->request.path);
    char room[WIRE_ADDRESS_SIZE];
    struct use_check check =
        use_check_of(server, connection, match.dialect, asks_of(&match, &head->request), room);
    struct http_head judged = *head;

    append_cors(server, &head->request, check.headers);
    judged.request.use = &check;
    route(server, connection, &match, &judged);
    count_use_refused(server, &check);
}

/* --- checks before a body is read --- */

static int check_body(struct server *server, struct http_connection *connection,
                      const struct http_head *head, struct http_refusal *refusal,
                      enum token_fault *ret_fault)
{
    const struct http_request *request = &head->request;
    const struct dialect_match match = find_dialect(server, request->path);
    enum stream_kind kind;

    if (server->is_draining && !server->has_successor)
        return refuse_draining(refusal);
    if (api_allow(request->path))
        return api_check_head(server->settings.api, request, refusal, ret_fault);
    if (match.dialect && match.route->methods & 1u << request->method)
        return streams_check_dialect(server->streams, match.dialect, is_private(server, connection),
                                     head, refusal, ret_fault);
    if (match.dialect)
        return refuse_method(match.route->allow, refusal);
    if (is_asked(request) && request->method == HTTP_POST)
        return streams_check_head(server->streams, head, refusal, ret_fault);
    if (is_asked(request))
        return refuse_method(ASKED_METHODS, refusal);
    if (!stream_path(request->path, &kind))
        return endpoints_refuse_body(server, connection, request, refusal);
    if (request->method != HTTP_POST)
        return refuse_method(STREAM_METHODS, refusal);
    return streams_check_head(server->streams, head, refusal, ret_fault);
}

static int check(void *owner, struct http_connection *connection, const struct http_head *head,
                 struct http_refusal *refusal)
{
    struct server *server = owner;
    char room[WIRE_ADDRESS_SIZE];
    struct use_check check = use_check_of(
        server, connection, find_dialect(server, head->request.path).dialect, USE_ASKS_LATER, room);
    struct http_head judged = *head;
    enum token_fault fault = TOKEN_OK;
    int r;

    judged.request.use = &check;
    r = check_body(server, connection, &judged, refusal, &fault);
    server_count_token_fault(server, connection, fault);
    count_use_refused(server, &check);
    if (r < 0) {
        server_count_refusal(server, connection, refusal);
        append_cors(server, &head->request, check.headers);
    }
    return r;
}

static void refuse_early(void *owner, struct http_connection *connection,
                         const struct http_request *request, const struct http_refusal *refusal)
{
    const struct dialect_match match = find_dialect(owner, request->path);

    if (match.dialect)
        refuse_in(connection, match.dialect, request, refusal);
    else
        http_answer_refusal(connection, refusal);
}

const struct http_handler server_handler = {check, handle, refuse_early};
