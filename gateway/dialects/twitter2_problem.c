/* twitter2_problem.c - a table with a row for each kind of refusal, found by its code, or else by
 * its status.
 *
 * Other refusals have the title that HTTP gives their status. The refused value is read again from
 * the query, because a refusal only contains the name of the parameter. */
#include "gateway/dialects/twitter2_problem.h"

#include "gateway/dialects/event_json.h"
#include "gateway/http/form.h"

struct problem {
    const char *code; /* of the refusal; NULL: any with that status */
    int status;
    int told; /* the status in the response; 0: the same */
    const char *type, *title;
    const char *name, *value;   /* one more member */
    const char *name2, *value2; /* another one; NULL: none */
};

#define ISSUE(kind) "connection_issue", kind

static const struct problem problems[] = {
    {"too_many_connections", 429, 0, TWITTER2_PROBLEMS "streaming-connection",
     "ConnectionException", ISSUE("TooManyConnections"), NULL, NULL},
    {"no_rules", 409, 0, TWITTER2_PROBLEMS "streaming-connection", "ConnectionException",
     ISSUE("RuleConfigurationIssue"), NULL, NULL},
    {"quota", 429, 0, TWITTER2_PROBLEMS "usage-capped", "UsageCapExceeded", "period", "Daily",
     "scope", "Account"},
    {NULL, 400, 0, TWITTER2_PROBLEMS "invalid-request", "Invalid Request", NULL, NULL, NULL, NULL},
    {NULL, 413, 400, TWITTER2_PROBLEMS "invalid-request", "Invalid Request", NULL, NULL, NULL,
     NULL},
    {NULL, 403, 0, TWITTER2_PROBLEMS "client-forbidden", "Client Forbidden", "reason",
     "client-not-enrolled", NULL, NULL},
};

/* NULL: it gets the title of its status. */
static const struct problem *find_problem(const struct http_refusal *refusal)
{
    for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
        if (problems[i].status == refusal->status &&
            (!problems[i].code || strcmp(problems[i].code, refusal->code) == 0))
            return &problems[i];
    }
    return NULL;
}

/* The values given for the refused parameter, as far as they can be parsed. */
static json_t *values_of(const struct http_request *http, const char *param)
{
    struct sl_slice value = SL_SLICE_NONE;
    struct form form = {&param, 1, &value, NULL};
    struct http_refusal ignored;
    json_t *values = json_array();

    form_read(&form, &http->query, 1, &ignored);
    if (values && value.data)
        json_array_append_new(values, json_stringn(value.data, value.size));
    form_done(&form);
    return values;
}

static json_t *errors_of(const struct http_request *http, const struct http_refusal *refusal)
{
    json_t *parameters = json_object();

    if (parameters && refusal->param[0])
        json_object_set_new(parameters, refusal->param, values_of(http, refusal->param));
    return json_pack("[{s:s,s:o}]", "message", refusal->message, "parameters", parameters);
}

static json_t *problem_of(const struct http_request *http, const struct http_refusal *refusal,
                          const struct problem *problem, int status)
{
    const char *title = problem ? problem->title : http_reason(status);
    bool is_invalid = status == 400;
    json_t *json = json_pack("{s:s,s:s,s:s,s:i}", "type", problem ? problem->type : "about:blank",
                             "title", title, "detail",
                             is_invalid ? "One or more parameters to your request was invalid."
                                        : refusal->message,
                             "status", status);

    if (json && problem && problem->name)
        json_object_set_new(json, problem->name, json_string(problem->value));
    if (json && problem && problem->name2)
        json_object_set_new(json, problem->name2, json_string(problem->value2));
    if (json && is_invalid)
        json_object_set_new(json, "errors", errors_of(http, refusal));
    return json;
}

void twitter2_refuse(const struct http_request *http, const struct http_refusal *refusal,
                     struct buffer *ret_body, struct http_answer *ret_answer)
{
    const struct problem *problem = find_problem(refusal);
    int status = problem && problem->told ? problem->told : refusal->status;
    json_t *json = problem_of(http, refusal, problem, status);

    ret_answer->status = status;
    ret_answer->content_type = "application/problem+json";
    if (!json || event_json_append(json, 0, ret_body) < 0)
        ret_body->failed = true;
    json_decref(json);
}

/* --- the end of a stream --------------------------------------------------------------------- */

static const char *const disconnect_types[DISCONNECT_REASON_COUNT] = {
    [DISCONNECT_DRAINING] = "UpstreamOperationalDisconnect",
    [DISCONNECT_TOKEN_EXPIRED] = "ForceDisconnect",
    [DISCONNECT_TOKEN_REVOKED] = "ForceDisconnect",
    [DISCONNECT_REPLACED] = "ForceDisconnect",
    [DISCONNECT_TOO_SLOW] = "SlowReader",
    [DISCONNECT_INTERNAL] = "InternalError",
    [DISCONNECT_BUSY] = "OperationalDisconnect",
    [DISCONNECT_ENDED] = "ForceDisconnect",
    [DISCONNECT_QUOTA] = "ForceDisconnect",
};

/* A stream that reaches its end gets no such message. */
void twitter2_disconnect(enum disconnect_reason why, struct buffer *ret_json)
{
    if (!disconnect_types[why])
        return;
    buffer_append_format(ret_json,
                         "{\"errors\":[{\"type\":\"" TWITTER2_PROBLEMS "operational-disconnect\","
                         "\"title\":\"operational-disconnect\",\"disconnect_type\":\"%s\","
                         "\"detail\":\"This stream has been disconnected: %s.\"}]}",
                         disconnect_types[why], disconnect_row(why)->reason);
}
