/* twitter2_connections.c - reads requests about connections, and prints the responses.
 *
 * Endpoints have names that stand for the paths of streams; a connection that does not belong to
 * this dialect is listed with its path. Closed connections are not remembered, so none is
 * `inactive`. The options of a query are the selected endpoints and fields. */
#include "gateway/dialects/twitter2_connections.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "gateway/dialects/event_json.h"
#include "gateway/dialects/twitter2_parameters.h"
#include "gateway/dialects/twitter2_problem.h"
#include "gateway/http/form.h"

enum { RESULTS = 10, RESULTS_MAX = 100 };

#define TWEETS "/2/tweets/"

/* `path` NULL: an endpoint that we do not have. */
static const struct {
    const char *name, *path;
} endpoints[] = {
    {"filtered_stream", TWEETS "search/stream"},
    {"sample_stream", TWEETS "sample/stream"},
    {"sample10_stream", TWEETS "sample10/stream"},
    {"firehose_stream", TWEETS "firehose/stream"},
    {"tweets_compliance_stream", TWEETS "compliance/stream"},
    {"users_compliance_stream", NULL},
    {"tweet_label_stream", NULL},
    {"firehose_stream_lang_en", TWEETS "firehose/stream/lang/en"},
    {"firehose_stream_lang_ja", TWEETS "firehose/stream/lang/ja"},
    {"firehose_stream_lang_ko", TWEETS "firehose/stream/lang/ko"},
    {"firehose_stream_lang_pt", TWEETS "firehose/stream/lang/pt"},
    {"likes_firehose_stream", NULL},
    {"likes_sample10_stream", NULL},
    {"likes_compliance_stream", NULL},
};

enum { ENDPOINTS = sizeof(endpoints) / sizeof(endpoints[0]) };

enum field {
    FIELD_CLIENT_IP,
    FIELD_CONNECTED_AT,
    FIELD_DISCONNECT_REASON, /* closed connections only, which are not remembered */
    FIELD_DISCONNECTED_AT,
    FIELD_ENDPOINT_NAME,
    FIELD_ID, /* always included */
    FIELDS
};

static const char *const fields[FIELDS] = {
    "client_ip", "connected_at", "disconnect_reason", "disconnected_at", "endpoint_name", "id",
};

/* Bits of the options: endpoints from bit 0 on, fields from FIELDS_AT on. */
enum { FIELDS_AT = 32 };

static bool has_field(const struct dialect_connection_query *query, enum field field)
{
    return query->options & UINT64_C(1) << (FIELDS_AT + (unsigned)field);
}

/* --- parameters ------------------------------------------------------------------------------ */

enum parameter {
    PARAMETER_CONNECTION_FIELDS,
    PARAMETER_ENDPOINTS,
    PARAMETER_MAX_RESULTS,
    PARAMETER_PAGINATION_TOKEN,
    PARAMETER_STATUS,
    PARAMETERS
};

static const char *const names[PARAMETERS] = {
    "connection.fields", "endpoints", "max_results", "pagination_token", "status",
};

static int refuse_value(enum parameter parameter, struct sl_slice value, const char *what,
                        struct http_refusal *refusal)
{
    return http_refuse(refusal, 400, "bad_parameter", names[parameter],
                       "The `%s` query parameter value [%.*s] is not %s", names[parameter],
                       value.size < 80 ? (int)value.size : 80, value.data, what);
}

/* UINT_MAX: there is none. */
static unsigned endpoint_called(struct sl_slice name)
{
    for (unsigned i = 0; i < ENDPOINTS; i++) {
        if (sl_slice_is(name, endpoints[i].name))
            return i;
    }
    return UINT32_MAX;
}

static int read_endpoints(struct sl_slice text, uint64_t *options, struct http_refusal *refusal)
{
    while (text.size > 0) {
        struct sl_slice name = http_next_element(&text, ',');
        unsigned endpoint = endpoint_called(name);

        if (endpoint == UINT32_MAX)
            return refuse_value(PARAMETER_ENDPOINTS, name,
                                "the name of an endpoint, as sample_stream is", refusal);
        *options |= UINT64_C(1) << endpoint;
    }
    return 0;
}

static int read_fields(struct sl_slice text, uint64_t *options, struct http_refusal *refusal)
{
    if (!text.data)
        *options |= ((UINT64_C(1) << FIELDS) - 1) << FIELDS_AT;
    while (text.size > 0) {
        struct sl_slice name = http_next_element(&text, ',');
        unsigned field = 0;

        while (field < FIELDS && !sl_slice_is(name, fields[field]))
            field++;
        if (field == FIELDS)
            return refuse_value(PARAMETER_CONNECTION_FIELDS, name,
                                "one of [client_ip,connected_at,disconnect_reason,disconnected_at,"
                                "endpoint_name,id]",
                                refusal);
        *options |= UINT64_C(1) << (FIELDS_AT + field);
    }
    return 0;
}

static int read_max(struct sl_slice text, unsigned *ret_max, struct http_refusal *refusal)
{
    unsigned max = 0;

    *ret_max = RESULTS;
    if (!text.data)
        return 0;
    for (size_t i = 0; i < text.size && max <= RESULTS_MAX; i++)
        max = text.data[i] >= '0' && text.data[i] <= '9' ? max * 10 + (unsigned)(text.data[i] - '0')
                                                         : RESULTS_MAX + 1;
    if (max < 1 || max > RESULTS_MAX)
        return refuse_value(PARAMETER_MAX_RESULTS, text, "a number between 1 and 100", refusal);
    *ret_max = max;
    return 0;
}

static int read_list(const struct sl_slice *values, struct dialect_connection_query *query,
                     struct http_refusal *refusal)
{
    struct sl_slice status = values[PARAMETER_STATUS];
    struct sl_slice after = values[PARAMETER_PAGINATION_TOKEN];
    int r = read_endpoints(values[PARAMETER_ENDPOINTS], &query->options, refusal);

    query->is_all = (query->options & UINT32_MAX) == 0;
    if (r == 0)
        r = read_fields(values[PARAMETER_CONNECTION_FIELDS], &query->options, refusal);
    if (r == 0)
        r = read_max(values[PARAMETER_MAX_RESULTS], &query->max, refusal);
    if (r < 0)
        return r;
    if (after.data && after.size != DIALECT_CONNECTION_ID_SIZE - 1)
        return refuse_value(PARAMETER_PAGINATION_TOKEN, after, "a `next_token`", refusal);
    if (after.data)
        memcpy(query->after, after.data, after.size);
    if (sl_slice_is(status, "inactive"))
        query->max = 0;
    else if (status.data && !sl_slice_is(status, "active") && !sl_slice_is(status, "all"))
        return refuse_value(PARAMETER_STATUS, status, "one of [active,inactive,all]", refusal);
    return 0;
}

/* --- connections to be ended ----------------------------------------------------------------- */

static int refuse_body(struct http_refusal *refusal)
{
    return http_refuse(refusal, 400, "bad_body", "uuids",
                       "the body is a JSON object with `uuids`, an array of 1 to %d ids of "
                       "connections",
                       DIALECT_CONNECTIONS_MAX);
}

static int read_uuids(const json_t *uuids, struct dialect_connection_query *query,
                      struct http_refusal *refusal)
{
    size_t count = json_array_size(uuids);

    if (count < 1 || count > DIALECT_CONNECTIONS_MAX)
        return refuse_body(refusal);
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_array_get(uuids, i);

        if (!json_is_string(id) || json_string_length(id) != DIALECT_CONNECTION_ID_SIZE - 1)
            return refuse_body(refusal);
        memcpy(query->ids[query->id_count++], json_string_value(id), DIALECT_CONNECTION_ID_SIZE);
    }
    return 0;
}

static int read_body(struct sl_slice body, struct dialect_connection_query *query,
                     struct http_refusal *refusal)
{
    json_t *object =
        body.size > 0 ? json_loadb(body.data, body.size, JSON_REJECT_DUPLICATES, NULL) : NULL;
    int r = json_object_size(object) == 1
                ? read_uuids(json_object_get(object, "uuids"), query, refusal)
                : refuse_body(refusal);

    json_decref(object);
    return r;
}

static int read_end(const struct http_request *http, struct dialect_connection_query *query,
                    struct http_refusal *refusal)
{
    const struct sl_slice root = SL_SLICE(TWITTER2_CONNECTIONS "/");
    struct sl_slice name = sl_slice_starts_with(http->path, root)
                               ? sl_slice_from(http->path, root.size)
                               : SL_SLICE_NONE;
    unsigned endpoint = endpoint_called(name);

    query->ends = true;
    if (!name.data)
        return read_body(http->body, query, refusal);
    query->is_all = sl_slice_is(name, "all");
    if (query->is_all)
        return 0;
    if (endpoint == UINT32_MAX)
        return http_refuse(refusal, 400, "bad_endpoint", "endpoint_id",
                           "The `endpoint_id` path parameter value [%.*s] is not the name of an "
                           "endpoint, as sample_stream is",
                           name.size < 80 ? (int)name.size : 80, name.data);
    query->options = UINT64_C(1) << endpoint;
    return 0;
}

static int read_query(const struct dialect_request *request, struct dialect_connection_query *query,
                      struct http_refusal *refusal)
{
    bool is_list = request->http->method == HTTP_GET;
    struct sl_slice values[PARAMETERS];
    struct form form = {names, is_list ? PARAMETERS : 0, values, NULL};
    int r = form_read(&form, &request->http->query, 1, refusal);

    if (r == 0)
        r = is_list ? read_list(values, query, refusal) : read_end(request->http, query, refusal);
    form_done(&form);
    return r;
}

static bool wants(const struct dialect_connection_query *query, const char *path)
{
    for (unsigned i = 0; i < ENDPOINTS; i++) {
        if (endpoints[i].path && strcmp(endpoints[i].path, path) == 0)
            return query->options & UINT64_C(1) << i;
    }
    return false;
}

/* --- answers --------------------------------------------------------------------------------- */

static const char *endpoint_at(const char *path)
{
    for (unsigned i = 0; i < ENDPOINTS; i++) {
        if (endpoints[i].path && strcmp(endpoints[i].path, path) == 0)
            return endpoints[i].name;
    }
    return path;
}

static json_t *connection_of(const struct dialect_connection_query *query,
                             const struct dialect_connection *connection)
{
    json_t *json = json_pack("{s:s}", "id", connection->id);

    if (has_field(query, FIELD_ENDPOINT_NAME))
        json_object_set_new(json, "endpoint_name", json_string(endpoint_at(connection->path)));
    if (has_field(query, FIELD_CONNECTED_AT))
        json_object_set_new(json, "connected_at", event_json_time(connection->since_ms));
    if (has_field(query, FIELD_CLIENT_IP) && connection->address[0])
        json_object_set_new(json, "client_ip", json_string(connection->address));
    return json;
}

static json_t *list_of(const struct dialect_connection_query *query,
                       const struct dialect_connection_result *result)
{
    json_t *answer = json_pack("{s:{s:I}}", "meta", "result_count", (json_int_t)result->count);
    json_t *meta = json_object_get(answer, "meta"), *data = json_array();

    for (size_t i = 0; i < result->count; i++)
        json_array_append_new(data, connection_of(query, &result->connections[i]));
    if (result->count > 0)
        json_object_set(answer, "data", data);
    if (result->count > 0 && result->has_more)
        json_object_set_new(meta, "next_token",
                            json_string(result->connections[result->count - 1].id));
    json_decref(data);
    return answer;
}

static json_t *end_of(const struct dialect_connection *connection, bool is_complete)
{
    json_t *json = json_pack("{s:s,s:b}", "uuid", connection->id, "success", connection->is_ended);

    if (!connection->is_ended)
        json_object_set_new(json, "error_message",
                            json_string(is_complete ? "you have no such connection"
                                                    : "its server has not answered"));
    return json;
}

static json_t *ends_of(const struct dialect_connection_result *result)
{
    json_t *results = json_array();

    for (size_t i = 0; i < result->count; i++)
        json_array_append_new(results, end_of(&result->connections[i], result->is_complete));
    return json_pack("{s:{s:I,s:I,s:o}}", "data", "successful_kills", (json_int_t)result->ended,
                     "failed_kills", (json_int_t)result->not_ended, "results", results);
}

/* An error next to the results: not all workers have answered. */
static json_t *silence(void)
{
    return json_pack("[{s:s,s:s,s:s,s:i}]", "type", TWITTER2_PROBLEMS "resource-unavailable",
                     "title", "Resource Unavailable", "detail",
                     "A server has not answered: there may be more connections.", "status", 503);
}

static int answer(const struct dialect_connection_query *query,
                  const struct dialect_connection_result *result, struct buffer *ret_body)
{
    json_t *json = query->ends ? ends_of(result) : list_of(query, result);
    int r;

    if (json && !result->is_complete)
        json_object_set_new(json, "errors", silence());
    r = json ? event_json_append(json, 0, ret_body) : -ENOMEM;
    json_decref(json);
    return r;
}

const struct dialect_connections twitter2_connections = {read_query, wants, answer};
