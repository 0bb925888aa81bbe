/* connection_request.c - HTTP requests about connections, until all workers have answered.
 *
 * A table maps paths and methods to operations and their scopes. Then one question is sent to all
 * workers, or to the one in the id (access/control_channel.h). Limits: a subject may have
 * SUBJECT_REQUESTS_MAX requests in progress on a worker, all subjects together
 * CONTROL_QUESTIONS_MAX; each ends within CONTROL_ANSWER_MS. */
#include "gateway/streams/connections.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/access/audit_log.h"
#include "gateway/access/control_channel.h"
#include "gateway/front/bearer.h"
#include "gateway/http/form.h"
#include "gateway/streams/renewal.h"
#include "gateway/streams/stream.h"

enum { SUBJECT_REQUESTS_MAX = 4 };

#define ROOT "/v1/connections"

/* The kinds of paths. */
enum place { PLACE_ALL, PLACE_ONE, PLACE_TOKEN, PLACE_NONE };

struct connection_request {
    struct streams *streams;
    struct http_connection *connection;
    struct list_node node; /* in streams->connection_requests */
    struct control_question question;
    struct control_wait *wait; /* NULL: not waiting for an answer */
    enum place place;
    bool is_admin;
    char holder[TOKEN_SUBJECT_SIZE]; /* that asks */
    char subject[TOKEN_SUBJECT_SIZE];
};

/* --- paths --------------------------------------------------------------------------------- */

static enum place read_path(struct sl_slice path, struct sl_slice *ret_id)
{
    const size_t before_id = sizeof(ROOT) /* with the slash */, id = CONNECTION_ID_SIZE - 1;

    *ret_id = SL_SLICE_NONE;
    if (sl_slice_is(path, ROOT))
        return PLACE_ALL;
    if (!sl_slice_starts_with(path, SL_SLICE(ROOT "/")) || path.size < before_id + id)
        return PLACE_NONE;
    *ret_id = sl_slice(path.data + before_id, id);
    if (!connection_id_is_valid(*ret_id))
        return PLACE_NONE;
    if (path.size == before_id + id)
        return PLACE_ONE;
    return sl_slice_is(sl_slice_from(path, before_id + id), "/token") ? PLACE_TOKEN : PLACE_NONE;
}

const char *connections_allow(struct sl_slice path)
{
    static const char *const methods[] = {
        [PLACE_ALL] = "GET, HEAD, DELETE, OPTIONS",
        [PLACE_ONE] = "GET, HEAD, DELETE, OPTIONS",
        [PLACE_TOKEN] = "PUT, OPTIONS",
        [PLACE_NONE] = NULL,
    };
    struct sl_slice id;

    return methods[read_path(path, &id)];
}

/* false: the path does not permit the method. */
static bool choose_operation(enum place place, enum http_method method,
                             enum control_operation *ret_operation)
{
    if (place == PLACE_TOKEN) {
        *ret_operation = CONTROL_RENEW;
        return method == HTTP_PUT;
    }
    *ret_operation = method == HTTP_DELETE ? CONTROL_END : CONTROL_LIST;
    return method == HTTP_DELETE || method == HTTP_GET || method == HTTP_HEAD;
}

/* --- scopes -------------------------------------------------------------------------------- */

static int refuse_scope(const char *message, struct http_refusal *refusal)
{
    http_refuse(refusal, 403, "insufficient_scope", NULL, "%s", message);
    refusal->www_authenticate = "Bearer error=\"insufficient_scope\"";
    return -EPROTO;
}

int connections_check_scope(const struct token *token, bool ends, struct http_refusal *refusal)
{
    unsigned enough = TOKEN_SCOPE_ADMIN | TOKEN_SCOPE_WRITE | (ends ? 0 : TOKEN_SCOPE_READ);

    if (token->scopes & enough)
        return 0;
    return refuse_scope(ends ? "this needs scope write or admin"
                             : "this needs scope read, write or admin",
                        refusal);
}

/* --- the question -------------------------------------------------------------------------- */

static int refuse_id(struct http_refusal *refusal)
{
    return http_refuse(refusal, 400, "bad_after", "after", "not the id of a connection");
}

static int refuse_subject(struct http_refusal *refusal)
{
    return http_refuse(refusal, 400, "bad_sub", "sub", "a subject has 1 to %d bytes",
                       TOKEN_SUBJECT_SIZE - 1);
}

/* Reads the subject, and the id after which a list begins. */
static int read_parameters(const struct sl_slice *values, const struct token *token,
                           struct control_question *question, struct http_refusal *refusal)
{
    const struct sl_slice sub = values[1];
    bool is_admin = token->scopes & TOKEN_SCOPE_ADMIN;

    if (values[0].data && !connection_id_is_valid(values[0]))
        return refuse_id(refusal);
    if (values[0].data)
        memcpy(question->after, values[0].data, values[0].size);
    if (sub.data && (sub.size == 0 || sub.size >= TOKEN_SUBJECT_SIZE))
        return refuse_subject(refusal);
    if (sub.data && !is_admin && !sl_slice_is(sub, token->subject))
        return refuse_scope("connections of others need scope admin", refusal);
    if (!sub.data && !question->id[0] && question->operation == CONTROL_END)
        return http_refuse(refusal, 400, "missing_parameter", "sub",
                           "sub is required: whose connections to end");
    if (sub.data)
        memcpy(question->holder, sub.data, sub.size);
    else if (!is_admin || question->operation == CONTROL_RENEW)
        memcpy(question->holder, token->holder, sizeof(question->holder));
    return 0;
}

static int read_query(const struct http_request *http, enum place place, const struct token *token,
                      struct control_question *question, struct http_refusal *refusal)
{
    static const char *const names[] = {"after", "sub"};
    struct sl_slice values[] = {SL_SLICE_NONE, SL_SLICE_NONE};
    struct form form = {names, place == PLACE_ALL ? 2 : 0, values, NULL};
    int r = form_read(&form, &http->query, 1, refusal);

    if (r == 0)
        r = read_parameters(values, token, question, refusal);
    form_done(&form);
    return r;
}

/* --- answers ------------------------------------------------------------------------------- */

static void print_row(const struct control_row *row, bool is_admin, struct buffer *json)
{
    char time[CLOCK_RFC3339_SIZE];

    clock_format_rfc3339(row->since_ms, time);
    buffer_append_format(json,
                         "{\"id\":\"%s\",\"path\":\"%s\",\"transport\":\"%s\",\"since\":\"%s\"",
                         row->id, row->path[0] ? row->path : stream_path_of(row->stream),
                         stream_format_name(row->format), time);
    if (row->expires_ms) {
        clock_format_rfc3339(row->expires_ms, time);
        buffer_append_format(json, ",\"expires\":\"%s\"", time);
    }
    if (row->address[0])
        buffer_append_format(json, ",\"address\":\"%s\"", row->address);
    buffer_append_format(
        json,
        ",\"streams\":%" PRIu64 ",\"filters\":%" PRIu64 ",\"filter_bytes\":%" PRIu64
        ",\"lag_ms\":%" PRIu64 ",\"events\":%" PRIu64 ",\"bytes\":%" PRIu64,
        row->streams, row->filters, row->filter_bytes, row->lag_ms, row->events, row->bytes);
    if (is_admin && row->subject[0]) {
        buffer_append_str(json, ",\"subject\":");
        buffer_append_json_string(json, sl_slice_str(row->subject));
    }
    buffer_append_char(json, '}');
}

static void print_list(const struct connection_request *request,
                       const struct control_answer *answer, bool is_complete, struct buffer *json)
{
    buffer_append_str(json, "{\"items\":[");
    for (size_t i = 0; i < answer->row_count; i++) {
        if (i > 0)
            buffer_append_char(json, ',');
        print_row(&answer->rows[i], request->is_admin, json);
    }
    buffer_append_char(json, ']');
    if (answer->row_count > 0)
        buffer_append_format(json, ",\"next\":\"%s\"", answer->rows[answer->row_count - 1].id);
    buffer_append_format(json, ",\"total\":%" PRIu64 ",\"complete\":%s}\n", answer->matched,
                         is_complete ? "true" : "false");
}

static void print(const struct connection_request *request, const struct control_answer *answer,
                  bool is_complete, struct buffer *json)
{
    char time[CLOCK_RFC3339_SIZE];

    if (request->place == PLACE_TOKEN) {
        clock_format_rfc3339(request->question.token.expires_ms, time);
        buffer_append_format(json, "{\"id\":\"%s\",\"expires\":\"%s\"}\n", request->question.id,
                             time);
    } else if (request->place == PLACE_ALL && request->question.operation == CONTROL_END) {
        buffer_append_format(json, "{\"ended\":%" PRIu64 ",\"complete\":%s}\n", answer->matched,
                             is_complete ? "true" : "false");
    } else if (request->place == PLACE_ALL) {
        print_list(request, answer, is_complete, json);
    } else if (answer->row_count > 0) {
        print_row(&answer->rows[0], request->is_admin, json);
        buffer_append_char(json, '\n');
    }
}

static void answer_json(const struct connection_request *request,
                        const struct control_answer *answer, bool is_complete)
{
    struct buffer json = BUFFER_INIT;
    bool is_empty = request->place == PLACE_ONE && request->question.operation == CONTROL_END;
    struct http_answer http = {.status = is_empty ? 204 : 200};

    if (!is_empty) {
        print(request, answer, is_complete, &json);
        http.content_type = "application/json";
        http.body = buffer_slice(&json);
    }
    http_answer(request->connection, &http);
    buffer_done(&json);
}

static void refuse_for_silence(struct http_connection *connection)
{
    struct http_refusal refusal;

    http_refuse(&refusal, 503, "timeout", NULL,
                "the worker with this connection has not answered; it is unknown whether it was "
                "done");
    refusal.retry_after_s = HTTP_RETRY_AFTER_S;
    http_answer_refusal(connection, &refusal);
}

/* --- processing ---------------------------------------------------------------------------- */

static void request_free(struct connection_request *request)
{
    list_remove(&request->streams->connection_requests, &request->node);
    mem_free(request);
}

static void on_abandoned(void *owner)
{
    struct connection_request *request = owner;

    control_wait_forget(request->wait);
    request_free(request);
}

/* An administrator has ended connections, of any subject. */
static void audit_end(const struct connection_request *request, const struct control_answer *answer)
{
    struct audit_log *audit = request->streams->settings.audit;
    const struct wire *wire = http_connection_wire(request->connection);
    char room[WIRE_ADDRESS_SIZE];
    struct buffer json;

    if (!request->is_admin || request->question.operation != CONTROL_END ||
        !audit_begin(audit, "admin", &json))
        return;
    audit_text(&json, "sub", sl_slice_str(request->subject));
    audit_address(&json, wire_client_address(wire, room));
    audit_text(&json, "operation", SL_SLICE("DELETE /v1/connections"));
    if (request->question.id[0])
        audit_text(&json, "connection", sl_slice_str(request->question.id));
    else if (request->question.holder[0])
        audit_text(&json, "of", sl_slice_str(request->question.holder));
    audit_number(&json, "ended", answer->matched);
    audit_end_take(audit, &json);
}

/* If a token is accepted, the worker that has the connection writes the line. */
static void audit_token_refused(const struct connection_request *request, const char *code)
{
    struct audit_log *audit = request->streams->settings.audit;
    const struct wire *wire = http_connection_wire(request->connection);
    char room[WIRE_ADDRESS_SIZE];
    struct buffer json;

    if (request->place != PLACE_TOKEN || !audit_begin_refused(audit, "token_refused", &json))
        return;
    audit_text(&json, "connection", sl_slice_str(request->question.id));
    audit_text(&json, "sub", sl_slice_str(request->subject));
    if (request->question.token.jti[0])
        audit_text(&json, "jti", sl_slice_str(request->question.token.jti));
    audit_address(&json, wire_client_address(wire, room));
    audit_text(&json, "code", sl_slice_str(code));
    audit_end_take(audit, &json);
}

static void on_answered(void *owner, const struct control_answer *answer, bool is_complete)
{
    struct connection_request *request = owner;
    struct http_refusal refusal;

    request->wait = NULL;
    audit_end(request, answer);
    if (request->place == PLACE_ALL || answer->result == CONTROL_DONE) {
        answer_json(request, answer, is_complete);
    } else if (!is_complete) {
        refuse_for_silence(request->connection);
    } else {
        renewal_refuse(answer->result, &refusal);
        audit_token_refused(request, refusal.code);
        http_answer_refusal(request->connection, &refusal);
    }
    request_free(request);
}

int connections_refuse_subject(struct http_refusal *refusal)
{
    http_refuse(refusal, 429, "too_many_questions", NULL,
                "this token's subject has too many requests about connections in progress");
    refusal->retry_after_s = HTTP_RETRY_AFTER_S;
    return -EPROTO;
}

static int check_room(const struct streams *streams, const char *holder,
                      struct http_refusal *refusal)
{
    unsigned own = 0;

    LIST_EACH(&streams->connection_requests, node)
    own += strcmp(LIST_OWNER(node, struct connection_request, node)->holder, holder) == 0;
    return own < SUBJECT_REQUESTS_MAX ? 0 : connections_refuse_subject(refusal);
}

static void refuse_for_room(struct http_connection *connection, int r)
{
    struct http_refusal refusal;

    http_refuse(&refusal, 503, r == -EBUSY ? "busy" : "no_memory", NULL, "%s",
                r == -EBUSY ? "this server has too many requests about connections in progress"
                            : "out of memory");
    refusal.retry_after_s = HTTP_RETRY_AFTER_S;
    http_answer_refusal(connection, &refusal);
}

/* 0: the request is or will be answered; -ENOMEM: it is not. */
static int ask(struct streams *streams, struct http_connection *connection, enum place place,
               const struct token *token, const struct control_question *question)
{
    struct connection_request *request = mem_zalloc(sizeof(*request));
    struct control_wait *wait;
    int r;

    if (!request)
        return -ENOMEM;
    request->streams = streams;
    request->connection = connection;
    request->question = *question;
    request->place = place;
    request->is_admin = token->scopes & TOKEN_SCOPE_ADMIN;
    memcpy(request->holder, token->holder, sizeof(request->holder));
    memcpy(request->subject, token->subject, sizeof(request->subject));
    list_append(&streams->connection_requests, &request->node);
    http_answer_later(connection, on_abandoned, request);
    r = control_channel_ask(streams->settings.control, &request->question, on_answered, request,
                            &wait);
    if (r < 0) {
        refuse_for_room(connection, r);
        request_free(request);
    } else if (wait) {
        request->wait = wait;
    }
    return 0;
}

static int understand(const struct streams *streams, const struct http_request *http,
                      enum place place, struct sl_slice id, struct control_question *ret_question,
                      struct token *ret_token, struct http_refusal *refusal,
                      enum token_fault *ret_fault)
{
    int r;

    if (!choose_operation(place, http->method, &ret_question->operation)) {
        http_refuse(refusal, 405, "method_not_allowed", NULL, "this path takes %s",
                    connections_allow(http->path));
        refusal->allow = connections_allow(http->path);
        return -EPROTO;
    }
    r = bearer_check(streams->settings.front->policy, http, SL_SLICE_NONE, clock_wall_ms(),
                     ret_token, refusal, ret_fault);
    /* The scope of a renewal is checked by the worker that has the connection. */
    if (r == 0 && ret_question->operation != CONTROL_RENEW)
        r = connections_check_scope(ret_token, ret_question->operation == CONTROL_END, refusal);
    if (r < 0)
        return r;
    if (id.data)
        memcpy(ret_question->id, id.data, id.size);
    if (ret_question->operation == CONTROL_RENEW)
        ret_question->token = *ret_token;
    r = read_query(http, place, ret_token, ret_question, refusal);
    return r < 0 ? r : check_room(streams, ret_token->holder, refusal);
}

int streams_connections(struct streams *streams, struct http_connection *connection,
                        const struct http_head *head, struct http_refusal *refusal,
                        enum token_fault *ret_fault)
{
    struct control_question question = {.number = 0};
    struct sl_slice id;
    enum place place = read_path(head->request.path, &id);
    struct token token;
    int r;

    r = understand(streams, &head->request, place, id, &question, &token, refusal, ret_fault);
    if (r == 0)
        r = ask(streams, connection, place, &token, &question);
    if (r != -ENOMEM)
        return r;
    http_refuse(refusal, 503, "no_memory", NULL, "out of memory");
    refusal->retry_after_s = HTTP_RETRY_AFTER_S;
    return -EPROTO;
}
