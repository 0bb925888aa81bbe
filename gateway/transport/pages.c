#include "gateway/transport/pages.h"

#include <errno.h>

#include "base/clock.h"
#include "gateway/front/bearer.h"
#include "gateway/front/site.h"
#include "gateway/metrics/status.h"
#include "gateway/transport/exchange.h"
#include "gateway/transport/respond.h"
#include "gateway/transport/server_private.h"

enum { RETRY_AFTER_S = 2 };

/* --- for operators --- */

static int answer_text(struct connection *connection, const struct http_request *http, int status,
                       const char *text)
{
    return respond(connection, http,
                   &(struct answer){.status = status,
                                    .content_type = "text/plain; charset=utf-8",
                                    .body = sl_slice_str(text)});
}

static int answer_health(struct connection *connection, const struct http_request *http)
{
    return answer_text(connection, http, 200, "ok\n");
}

/* For all workers: a load balancer that is told yes may meet any of them. */
static bool all_workers_hear(const struct metrics_board *board)
{
    return metrics_sum(board, METRIC_SUBSCRIBED) >= metrics_sum(board, METRIC_WORKER_UP);
}

static int answer_readiness(struct connection *connection, const struct http_request *http)
{
    struct http_refusal refusal;

    if (exchange_check_readiness(connection->server, &refusal) < 0)
        return respond_refusal(connection, http, &refusal);
    if (!connection->server->is_draining && !all_workers_hear(connection->server->settings.board)) {
        http_refuse(&refusal, 503, "redis_away", NULL, "a worker does not hear Redis now");
        refusal.retry_after_s = RETRY_AFTER_S;
        return respond_refusal(connection, http, &refusal);
    }
    return answer_text(connection, http, 200, "ready\n");
}

static int answer_metrics(struct connection *connection, const struct http_request *http)
{
    struct buffer text = BUFFER_INIT;
    int r;

    metrics_print(connection->server->settings.board, &text);
    r = text.failed ? -1
                    : respond(connection, http,
                              &(struct answer){.status = 200,
                                               .content_type = "text/plain; version=0.0.4",
                                               .body = buffer_slice(&text)});
    buffer_done(&text);
    return r;
}

/* Whose clients are slow is for operators, and for whoever develops. A token is not needed, but one
 * that is shown must be good. */
static int may_see_subjects(struct server *server, const struct http_request *http, bool *ret_may,
                            struct http_refusal *refusal)
{
    enum token_fault fault = TOKEN_OK;
    struct token token;
    int r;

    *ret_may = server->settings.config->dev;
    if (!http->authorization.data)
        return 0;
    r = bearer_check(server->settings.front->policy, http, SL_SLICE_NONE, clock_wall_ms(), &token,
                     refusal, &fault);
    exchange_count_token_fault(server, fault);
    if (r == 0)
        *ret_may = *ret_may || token.scopes & TOKEN_SCOPE_ADMIN;
    return r;
}

static int answer_status(struct connection *connection, const struct http_request *http)
{
    const struct server_settings *settings = &connection->server->settings;
    struct buffer json = BUFFER_INIT;
    struct http_refusal refusal;
    bool with_subjects;
    int r;

    r = may_see_subjects(connection->server, http, &with_subjects, &refusal);
    if (r < 0)
        return r == -ENOMEM ? -1 : respond_refusal(connection, http, &refusal);
    status_print(settings->board, settings->slow_board, with_subjects, clock_wall_ms(), &json);
    r = json.failed ? -1
                    : respond(connection, http,
                              &(struct answer){.status = 200,
                                               .content_type = "application/json",
                                               .body = buffer_slice(&json)});
    buffer_done(&json);
    return r;
}

static const struct {
    const char *path;
    int (*answer)(struct connection *connection, const struct http_request *http);
    bool is_for_all; /* whoever balances the load needs it, and it tells nothing more */
} pages[] = {
    {"/healthz", answer_health, true},
    {"/readyz", answer_readiness, true},
    {"/metrics", answer_metrics, false},
    {"/status.json", answer_status, false},
};

/* Where operators have a door of their own, the public one has nothing for them. */
static bool serves_operators(const struct connection *connection)
{
    const struct server *server = connection->server;

    return connection->door == &server->doors[DOOR_OPS] ||
           server->settings.doors[DOOR_OPS].count == 0;
}

/* --- the dashboard --- */

static int answer_file(struct connection *connection, const struct http_request *http,
                       const struct site_file *file)
{
    struct buffer headers = BUFFER_INIT;
    struct site_answer answer;
    int r;

    site_answer(file, http, &headers, &answer);
    r = headers.failed ? -1
                       : respond(connection, http,
                                 &(struct answer){.status = answer.status,
                                                  .content_type = answer.content_type,
                                                  .cache_control = answer.cache_control,
                                                  .headers = buffer_slice(&headers),
                                                  .body = answer.body});
    buffer_done(&headers);
    return r;
}

/* --- by path --- */

int pages_answer(struct connection *connection, const struct http_request *http)
{
    bool is_for_operators = serves_operators(connection);
    const struct site_file *file = NULL;
    struct http_refusal refusal;

    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        if (!sl_slice_is(http->path, pages[i].path) || !(pages[i].is_for_all || is_for_operators))
            continue;
        if (http->method != HTTP_GET && http->method != HTTP_HEAD)
            return respond_method_refusal(connection, http, "GET, HEAD");
        return pages[i].answer(connection, http);
    }
    if (is_for_operators)
        file = site_find(connection->server->settings.site, http->path);
    if (file && http->method != HTTP_GET && http->method != HTTP_HEAD)
        return respond_method_refusal(connection, http, "GET, HEAD");
    if (file)
        return answer_file(connection, http, file);
    http_refuse(&refusal, 404, "not_found", NULL, "there is nothing at this path");
    return respond_refusal(connection, http, &refusal);
}
