#include <inttypes.h>
#include <string.h>

#include "gateway/access/audit_log.h"
#include "gateway/serve/server_private.h"

/* Whether a refusal is logged for auditors: the client is known, or had a ticket, and is not
 * permitted. Refused tokens have log lines of their own, and anonymous clients have none. */
static bool is_for_auditors(const struct http_refusal *refusal)
{
    return refusal->status == 403 || strcmp(refusal->code, "invalid_ticket") == 0;
}

static void audit_refusal(struct server *server, const struct http_connection *connection,
                          const struct http_refusal *refusal)
{
    char room[WIRE_ADDRESS_SIZE];
    struct buffer json;

    if (!is_for_auditors(refusal) || !audit_begin_refused(server->settings.audit, "refused", &json))
        return;
    audit_address(&json, wire_client_address(http_connection_wire(connection), room));
    audit_text(&json, "code", sl_slice_str(refusal->code));
    audit_end_take(server->settings.audit, &json);
}

void server_count_refusal(struct server *server, const struct http_connection *connection,
                          const struct http_refusal *refusal)
{
    uint64_t held_back;

    metric_add(server->settings.metrics, METRIC_REFUSED_REQUESTS, 1);
    audit_refusal(server, connection, refusal);
    if (log_rate_allows(&server->refusal_rate, uv_now(server->settings.loop), &held_back))
        log_info("refused", "status=%d code=%s param=%s held_back=%" PRIu64, refusal->status,
                 refusal->code, refusal->param[0] ? refusal->param : "-", held_back);
}

void server_refuse(struct server *server, struct http_connection *connection,
                   const struct http_refusal *refusal)
{
    server_count_refusal(server, connection, refusal);
    http_answer_refusal(connection, refusal);
}

static void audit_token_fault(struct server *server, const struct http_connection *connection,
                              enum token_fault fault)
{
    char room[WIRE_ADDRESS_SIZE];
    struct buffer json;

    if (!audit_begin_refused(server->settings.audit, "token_refused", &json))
        return;
    audit_address(&json, wire_client_address(http_connection_wire(connection), room));
    audit_text(&json, "fault", sl_slice_str(token_fault_name(fault)));
    audit_end_take(server->settings.audit, &json);
}

void server_count_token_fault(struct server *server, const struct http_connection *connection,
                              enum token_fault fault)
{
    uint64_t held_back;

    if (fault == TOKEN_OK)
        return;
    metric_add(server->settings.metrics, metric_at(METRIC_TOKENS_REFUSED, fault - 1), 1);
    audit_token_fault(server, connection, fault);
    if (log_rate_allows(&server->token_rate, uv_now(server->settings.loop), &held_back))
        log_info("token_refused", "fault=%s held_back=%" PRIu64, token_fault_name(fault),
                 held_back);
}

void server_audit_admin(struct server *server, const struct http_connection *connection,
                        const struct api_act *act, int status)
{
    char room[WIRE_ADDRESS_SIZE];
    struct buffer json;

    if (!audit_begin(server->settings.audit, "admin", &json))
        return;
    audit_text(&json, "sub", sl_slice_str(act->subject));
    audit_address(&json, wire_client_address(http_connection_wire(connection), room));
    audit_text(&json, "operation", sl_slice_str(act->operation));
    audit_number(&json, "status", (uint64_t)status);
    audit_end_take(server->settings.audit, &json);
}
