/* endpoints.c - requests that are neither streams nor API: endpoints for operators, and the
 * dashboard's files.
 *
 * A table has the endpoints by path; the files are compiled in. If operators have a separate port,
 * the public one only answers whether the server is healthy. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/api/api.h"
#include "gateway/delivery/dictionaries.h"
#include "gateway/front/bearer.h"
#include "gateway/front/site.h"
#include "gateway/http/form.h"
#include "gateway/metrics/health.h"
#include "gateway/metrics/history.h"
#include "gateway/metrics/status.h"
#include "gateway/serve/server_private.h"
#include "src/model/moment.h"

#define ENDPOINT_METHODS "GET, HEAD"

enum { NEAR_SIZE = 128 }; /* of a path that may have been meant */

static void refuse_for_memory(struct server *server, struct http_connection *connection)
{
    struct http_refusal refusal;

    http_refuse(&refusal, 503, "no_memory", NULL, "out of memory");
    refusal.retry_after_s = HTTP_RETRY_AFTER_S;
    server_refuse(server, connection, &refusal);
}

/* --- for operators --- */

static void answer_text(struct http_connection *connection, const char *text)
{
    http_answer(connection, &(struct http_answer){.status = 200,
                                                  .content_type = "text/plain; charset=utf-8",
                                                  .body = sl_slice_str(text)});
}

static void answer_health(struct server *server, struct http_connection *connection,
                          const struct http_request *request)
{
    (void)server;
    (void)request;
    answer_text(connection, "ok\n");
}

/* Takes ownership of `text`, which may have failed. */
static void answer_printed(struct server *server, struct http_connection *connection, int status,
                           const char *content_type, struct buffer *text)
{
    if (text->failed)
        refuse_for_memory(server, connection);
    else
        http_answer(connection, &(struct http_answer){.status = status,
                                                      .content_type = content_type,
                                                      .body = buffer_slice(text)});
    buffer_done(text);
}

/* For all workers, because a load balancer may reach any of them. */
static bool all_workers_are_ready(const struct metrics_board *board)
{
    return metrics_sum(board, METRIC_READY) >= metrics_sum(board, METRIC_WORKER_UP);
}

/* If operators have a separate port, the public one does not serve them. */
static bool serves_operators(const struct server *server, const struct http_connection *connection)
{
    return http_connection_listener(connection) == LISTENER_OPS ||
           server->settings.listeners[LISTENER_OPS].count == 0;
}

/* What a client may see. Reasons name hosts, paths and messages of Redis, and are shown only to
 * tokens with the scope admin, on the operators' own port and in development. The subjects of slow
 * clients need a token even on that port. A token is optional, but must be valid if given. */
static int find_view(struct server *server, const struct http_connection *connection,
                     const struct http_request *request, struct status_view *ret_view,
                     struct http_refusal *refusal)
{
    bool is_trusted = server->settings.config->dev;
    enum token_fault fault = TOKEN_OK;
    struct token token;

    if (request->authorization.data) {
        int r = bearer_check(server->settings.front->policy, request, SL_SLICE_NONE,
                             clock_wall_ms(), &token, refusal, &fault);

        server_count_token_fault(server, connection, fault);
        if (r < 0)
            return r;
        is_trusted = is_trusted || token.scopes & TOKEN_SCOPE_ADMIN;
    }
    ret_view->with_subjects = is_trusted;
    ret_view->with_reasons = is_trusted || http_connection_listener(connection) == LISTENER_OPS;
    return 0;
}

/* `r` is the result of find_view(). */
static void refuse_view(struct server *server, struct http_connection *connection, int r,
                        const struct http_refusal *refusal)
{
    if (r == -ENOMEM)
        refuse_for_memory(server, connection);
    else
        server_refuse(server, connection, refusal);
}

/* `refusal`: NULL when it is ready. */
static void answer_parts(struct server *server, struct http_connection *connection,
                         const struct http_request *request, const struct http_refusal *refusal)
{
    struct buffer json = BUFFER_INIT;
    struct http_refusal bad_token;
    struct history_state *history;
    struct status_view view;
    int r;

    r = find_view(server, connection, request, &view, &bad_token);
    if (r < 0) {
        refuse_view(server, connection, r, &bad_token);
        return;
    }

    history = history_read(server->settings.history);
    if (!history) {
        refuse_for_memory(server, connection);
        return;
    }
    buffer_append_format(&json, "{\"ready\":%s,\"code\":", refusal ? "false" : "true");
    if (refusal)
        buffer_append_json_string(&json, sl_slice_str(refusal->code));
    else
        buffer_append_str(&json, "null");
    buffer_append_char(&json, ',');
    history_print_verdict(history, clock_wall_ms(), &json);
    mem_free(history);
    buffer_append_str(&json, ",\"parts\":");
    health_print(server->settings.board, view.with_reasons, &json);
    buffer_append_str(&json, "}\n");
    answer_printed(server, connection, refusal ? refusal->status : 200, "application/json", &json);
}

static void answer_readiness(struct server *server, struct http_connection *connection,
                             const struct http_request *request)
{
    struct http_refusal refusal;
    int r;

    r = streams_check_readiness(server->streams, &refusal);
    if (r == 0 && !server->is_draining && !all_workers_are_ready(server->settings.board)) {
        r = http_refuse(&refusal, 503, "redis_away", NULL, "a worker does not reach Redis now");
        refusal.retry_after_s = HTTP_RETRY_AFTER_S;
    }
    if (sl_slice_is(request->query, "verbose") && serves_operators(server, connection))
        answer_parts(server, connection, request, r < 0 ? &refusal : NULL);
    else if (r < 0)
        server_refuse(server, connection, &refusal);
    else
        answer_text(connection, "ready\n");
}

static void answer_metrics(struct server *server, struct http_connection *connection,
                           const struct http_request *request)
{
    struct buffer text = BUFFER_INIT;

    (void)request;
    metrics_print(server->settings.board, &text);
    answer_printed(server, connection, 200, "text/plain; version=0.0.4", &text);
}

/* 0: everything stored. 0; -EPROTO: *refusal says what is wrong; -ENOMEM. */
static int read_since(const struct http_request *request, uint64_t now_ms, uint64_t *ret_since_ms,
                      struct http_refusal *refusal)
{
    static const char *const names[] = {"since"};
    struct sl_slice since = SL_SLICE_NONE;
    struct form form = {.names = names, .count = 1, .values = &since};
    struct sl_moment moment;
    struct failure failure;
    int r;

    *ret_since_ms = 0;
    r = form_read(&form, &request->query, 1, refusal);
    if (r == 0 && since.data && sl_moment_parse(since, now_ms, &moment, &failure) < 0)
        r = http_refuse(refusal, 400, "bad_since", "since", "%s", failure.text);
    else if (r == 0 && since.data)
        *ret_since_ms = sl_moment_ms(&moment);
    form_done(&form);
    return r;
}

static void answer_status(struct server *server, struct http_connection *connection,
                          const struct http_request *request)
{
    const struct server_settings *settings = &server->settings;
    struct buffer json = BUFFER_INIT;
    struct http_refusal refusal;
    uint64_t now_ms = clock_wall_ms();
    struct status_view view;
    int r;

    r = find_view(server, connection, request, &view, &refusal);
    if (r == 0)
        r = read_since(request, now_ms, &view.since_ms, &refusal);
    if (r < 0) {
        refuse_view(server, connection, r, &refusal);
        return;
    }
    status_print(settings->board, settings->slow_board, settings->history, view, now_ms, &json);
    answer_printed(server, connection, 200, "application/json", &json);
}

/* Answers with the available paths. */
static void answer_index(struct server *server, struct http_connection *connection,
                         const struct http_request *request)
{
    static const char *const links[] = {"openapi", "asyncapi"};
    const struct site *site = server->settings.site;
    struct buffer json = BUFFER_INIT;

    (void)request;
    buffer_append_str(&json, "{\"name\":\"sluiced\",\"version\":\"" SLUICE_VERSION "\"");
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        char path[sizeof("/asyncapi.yaml")];

        snprintf(path, sizeof(path), "/%s.yaml", links[i]);
        if (site_find(site, sl_slice_str(path)))
            buffer_append_format(&json, ",\"%s\":\"%s\"", links[i], path);
    }
    if (site_find(site, SL_SLICE("/docs")))
        buffer_append_str(&json, ",\"docs\":\"/docs\"");
    buffer_append_str(&json, ",\"streams\":[");
    for (int kind = 0; stream_path_of((enum stream_kind)kind); kind++)
        buffer_append_format(&json, "%s\"%s\"", kind ? "," : "",
                             stream_path_of((enum stream_kind)kind));
    buffer_append_str(&json, "],\"health\":\"/healthz\",\"readiness\":\"/readyz\"}\n");
    answer_printed(server, connection, 200, "application/json", &json);
}

/* --- dictionaries, which are public --- */

#define DICTIONARIES "/v1/dictionaries"

static void answer_dictionaries(struct server *server, struct http_connection *connection,
                                const struct http_request *request)
{
    const struct dictionaries *all = server->settings.dictionaries;
    struct http_refusal refusal;
    struct buffer json = BUFFER_INIT;

    (void)request;
    if (all && !dictionaries_are_current(all)) {
        http_refuse(&refusal, 503, "dictionary_not_ready", NULL,
                    "the dictionaries have not been read lately");
        refusal.retry_after_s = HTTP_RETRY_AFTER_S;
        server_refuse(server, connection, &refusal);
        return;
    }
    if (all)
        dictionaries_print(all, clock_wall_ms(), &json);
    else
        buffer_append_str(&json, "{\"dictionaries\":[]}\n");
    answer_printed(server, connection, 200, "application/json", &json);
}

/* NULL: *refusal says why. */
static const struct dictionary *find_dictionary(const struct server *server, struct sl_slice id,
                                                struct http_refusal *refusal)
{
    const struct dictionaries *all = server->settings.dictionaries;
    const struct dictionary *dictionary = NULL;
    uint32_t number;

    if (all && sl_dictionary_id_parse(id, &number, NULL) == 0)
        dictionary = dictionaries_find(all, number);
    if (dictionary && dictionary->known.withdrawn_ms) {
        http_refuse(refusal, 410, "dictionary_withdrawn", NULL, "it has been withdrawn");
    } else if (dictionary ? !dictionary->bytes.data : all && !dictionaries_are_current(all)) {
        http_refuse(refusal, 503, "dictionary_not_ready", NULL, "it has not been read yet");
        refusal->retry_after_s = HTTP_RETRY_AFTER_S;
    } else if (!dictionary) {
        http_refuse(refusal, 404, "unknown_dictionary", NULL, "there is no such dictionary");
    } else {
        return dictionary;
    }
    return NULL;
}

/* The bytes of a dictionary never change. */
static void answer_dictionary(struct server *server, struct http_connection *connection,
                              const struct http_request *request)
{
    struct http_refusal refusal;
    const struct dictionary *dictionary = find_dictionary(
        server, sl_slice_from(request->path, sizeof(DICTIONARIES "/") - 1), &refusal);

    if (!dictionary)
        server_refuse(server, connection, &refusal);
    else
        http_answer(connection,
                    &(struct http_answer){.status = 200,
                                          .content_type = "application/octet-stream",
                                          .cache_control = "public, max-age=31536000, immutable",
                                          .body = dictionary->bytes});
}

/* --- endpoints by path --- */

static const struct endpoint {
    const char *path; /* with a slash at its end: all paths that begin like this */
    void (*answer)(struct server *server, struct http_connection *connection,
                   const struct http_request *request);
    bool is_for_all; /* needed by load balancers, and reveals nothing else */
} endpoints[] = {
    {"/v1", answer_index, true},
    {DICTIONARIES, answer_dictionaries, true},
    {DICTIONARIES "/", answer_dictionary, true},
    {"/healthz", answer_health, true},
    {"/readyz", answer_readiness, true},
    {"/metrics", answer_metrics, false},
    {"/status.json", answer_status, false},
};

/* --- the dashboard --- */

static void answer_file(struct server *server, struct http_connection *connection,
                        const struct http_request *request, const struct site_file *file)
{
    struct buffer headers = BUFFER_INIT;
    struct site_answer answer;

    site_answer(file, request, &headers, &answer);
    if (headers.failed)
        refuse_for_memory(server, connection);
    else
        http_answer(connection, &(struct http_answer){.status = answer.status,
                                                      .content_type = answer.content_type,
                                                      .cache_control = answer.cache_control,
                                                      .headers = buffer_slice(&headers),
                                                      .body = answer.body});
    buffer_done(&headers);
}

/* --- by path --- */

struct found {
    const struct endpoint *endpoint;
    const struct site_file *file;
};

static bool is_at(const struct endpoint *endpoint, struct sl_slice path)
{
    size_t size = strlen(endpoint->path);

    return endpoint->path[size - 1] == '/'
               ? sl_slice_starts_with(path, sl_slice(endpoint->path, size)) && path.size > size
               : sl_slice_is(path, endpoint->path);
}

static bool find_endpoint(const struct server *server, const struct http_connection *connection,
                          struct sl_slice path, struct found *ret_found)
{
    bool is_for_operators = serves_operators(server, connection);

    *ret_found = (struct found){0};
    for (size_t i = 0; i < sizeof(endpoints) / sizeof(endpoints[0]); i++) {
        if (is_at(&endpoints[i], path) && (endpoints[i].is_for_all || is_for_operators))
            ret_found->endpoint = &endpoints[i];
    }
    if (!ret_found->endpoint)
        ret_found->file = site_find(server->settings.site, path);
    if (ret_found->file && !ret_found->file->is_for_all && !is_for_operators)
        ret_found->file = NULL;
    return ret_found->endpoint || ret_found->file;
}

/* Whether there is anything at this path: an endpoint, a file, a stream or a part of the API. */
static bool is_there(const struct server *server, const struct http_connection *connection,
                     struct sl_slice path)
{
    enum stream_kind kind;
    struct found found;

    return api_allow(path) || stream_path(path, &kind) ||
           find_endpoint(server, connection, path, &found);
}

/* What may have been meant: the path without slashes at the end, below /v1, or a stream in place of
 * streams. */
static bool find_near(const struct server *server, const struct http_connection *connection,
                      struct sl_slice path, char ret_near[static NEAR_SIZE])
{
    static const struct {
        const char *is, *means;
    } prefixes[] = {{"", ""},      {"/v1/streams", "/v1/stream"}, {"/streams", "/v1/stream"},
                    {"/", "/v1/"}, {"/", "/v1/stream/"},          {"/v1/", "/v1/stream/"}};

    while (path.size > 1 && path.data[path.size - 1] == '/')
        path.size--;
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        struct sl_slice is = sl_slice_str(prefixes[i].is);
        struct sl_slice rest;
        int size;

        if (!sl_slice_starts_with(path, is))
            continue;
        rest = sl_slice_from(path, is.size);
        size = snprintf(ret_near, NEAR_SIZE, "%s%.*s", prefixes[i].means, SL_SLICE_ARG(rest));
        if (size < NEAR_SIZE && is_there(server, connection, sl_slice_str(ret_near)))
            return true;
    }
    return false;
}

int endpoints_refuse_path(const struct server *server, const struct http_connection *connection,
                          struct sl_slice path, struct http_refusal *refusal)
{
    char near[NEAR_SIZE];

    if (find_near(server, connection, path, near))
        return http_refuse(refusal, 404, "not_found", NULL,
                           "there is nothing at this path; there is %s", near);
    return http_refuse(refusal, 404, "not_found", NULL, "there is nothing at this path");
}

/* 0; -EPROTO: *refusal says that there is nothing, or that another method is needed. */
static int find(const struct server *server, const struct http_connection *connection,
                const struct http_request *request, struct found *ret_found,
                struct http_refusal *refusal)
{
    if (!find_endpoint(server, connection, request->path, ret_found))
        return endpoints_refuse_path(server, connection, request->path, refusal);
    if (request->method == HTTP_GET || request->method == HTTP_HEAD)
        return 0;
    http_refuse(refusal, 405, "method_not_allowed", NULL, "this path takes " ENDPOINT_METHODS);
    refusal->allow = ENDPOINT_METHODS;
    return -EPROTO;
}

int endpoints_refuse_body(struct server *server, struct http_connection *connection,
                          const struct http_request *request, struct http_refusal *refusal)
{
    struct found found;

    if (find(server, connection, request, &found, refusal) == 0)
        http_refuse(refusal, 400, "bad_request", NULL, "this path takes no body");
    return -EPROTO;
}

void endpoints_answer(struct server *server, struct http_connection *connection,
                      const struct http_request *request)
{
    struct http_refusal refusal;
    struct found found;

    if (find(server, connection, request, &found, &refusal) < 0)
        server_refuse(server, connection, &refusal);
    else if (found.endpoint)
        found.endpoint->answer(server, connection, request);
    else
        answer_file(server, connection, request, found.file);
}
