#include <inttypes.h>

#include "gateway/serve/server_private.h"

void server_count_refusal(struct server *server, const struct http_refusal *refusal)
{
    uint64_t held_back;

    metric_add(server->settings.metrics, METRIC_REFUSED_REQUESTS, 1);
    if (log_rate_allows(&server->refusal_rate, uv_now(server->settings.loop), &held_back))
        log_info("refused", "status=%d code=%s param=%s held_back=%" PRIu64, refusal->status,
                 refusal->code, refusal->param[0] ? refusal->param : "-", held_back);
}

void server_refuse(struct server *server, struct http_connection *connection,
                   const struct http_refusal *refusal)
{
    server_count_refusal(server, refusal);
    http_answer_refusal(connection, refusal);
}

void server_count_token_fault(struct server *server, enum token_fault fault)
{
    uint64_t held_back;

    if (fault == TOKEN_OK)
        return;
    metric_add(server->settings.metrics, metric_at(METRIC_TOKENS_REFUSED, fault - 1), 1);
    if (log_rate_allows(&server->token_rate, uv_now(server->settings.loop), &held_back))
        log_info("token_refused", "fault=%s held_back=%" PRIu64, token_fault_name(fault),
                 held_back);
}
