/* named_filters.c - the messages of clients of /v1/stream, and their answers.
 *
 *     {"op":"subscribe","id":"a","filter":{...}}   {"op":"subscribed","id":"a"}
 *     {"op":"unsubscribe","id":"a"}                {"op":"unsubscribed","id":"a"}
 *     {"op":"list"}                                {"op":"list","rules":[{"id":"a","tag":".."}]}
 *     {"op":"fields","fields":"id,text"}           {"op":"fields","fields":"id,type,text"}
 *     {"op":"open","id":"b","path":"/v1/..."}      {"op":"opened","id":"b"}
 *     {"op":"close","id":"b"}                      {"op":"closed","id":"b"}
 *     {"op":"token","token":"..."}                 {"op":"renewed","expires":"2026-..."}
 *
 * An error is {"op":..,"id":..,"error":{"code","message","param","at"}}. An operation takes effect
 * between two events, at the position of its answer in the stream.
 *
 * A client that resumes with a cursor is sent what it missed after its first subscription. With
 * "more":true in a subscribe message it announces further subscriptions. */
#include <errno.h>
#include <jansson.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/frame.h"
#include "gateway/delivery/rule_set.h"
#include "gateway/front/event_fields.h"
#include "gateway/front/filter_json.h"
#include "gateway/streams/renewal.h"
#include "gateway/streams/stream.h"

static void say(struct websocket *websocket, struct buffer *json)
{
    struct buffer frame = BUFFER_INIT;

    frame_append_message(&frame, FORMAT_WEBSOCKET, "", buffer_slice(json));
    if (json->failed || frame.failed)
        stream_evict(&websocket->stream, DISCONNECT_INTERNAL);
    else
        stream_say(&websocket->stream, buffer_slice(&frame));
    buffer_done(&frame);
}

/* Begins an answer, without its end: {"op":..,"id":..; members that the client did not send are
 * left out. */
static void begin_answer(struct buffer *json, const char *op, struct sl_slice id)
{
    buffer_append_str(json, "{");
    if (op) {
        buffer_append_str(json, "\"op\":");
        buffer_append_json_string(json, sl_slice_str(op));
    }
    if (id.data) {
        buffer_append_str(json, op ? ",\"id\":" : "\"id\":");
        buffer_append_json_string(json, id);
    }
}

static void say_refusal(struct websocket *websocket, const char *op, struct sl_slice id,
                        const struct http_refusal *refusal)
{
    struct buffer json = BUFFER_INIT, error = BUFFER_INIT;
    struct sl_slice members;

    http_refusal_print(refusal, &error); /* {"error":{...}} and a newline */
    begin_answer(&json, op, id);
    if (json.size > 1)
        buffer_append_char(&json, ',');
    members = buffer_slice(&error);
    if (members.size > 2)
        buffer_append(&json, members.data + 1, members.size - 2);
    json.failed = json.failed || error.failed;
    say(websocket, &json);
    buffer_done(&error);
    buffer_done(&json);
}

/* Replaces a filter with the same id. */
static int take_filter(struct websocket *websocket, struct sl_slice id,
                       const struct sl_filter *filter, struct http_refusal *refusal)
{
    struct stream *stream = &websocket->stream;
    struct filter_change change;
    int r;

    change.replaced = rule_set_bytes_of(websocket->stream.own.rules, id, &change.freed);
    r = deliver_filter_cost(stream->streams->settings.deliver, filter, &change.added);
    return r < 0 ? r
                 : stream_filters_take(stream->streams, &stream->own.request.token, &change,
                                       &stream->own.filters, refusal);
}

static void settle_filters(struct websocket *websocket)
{
    stream_filters_settle(websocket->stream.streams, &websocket->stream.own.request.token,
                          rule_set_bytes(websocket->stream.own.rules),
                          &websocket->stream.own.filters);
}

/* 0: the caller owns a reference to *ret_filter; -EPROTO: *refusal is set; -ENOMEM. */
static int read_filter(struct websocket *websocket, const json_t *message, struct sl_slice id,
                       struct sl_filter **ret_filter, struct sl_slice *ret_tag,
                       struct sl_filter_warnings *ret_warnings, struct http_refusal *refusal)
{
    const struct stream_request *request = &websocket->stream.own.request;
    const struct sl_filter_limits limits = stream_request_limits(request);
    const json_t *json = json_object_get(message, "filter");
    struct sl_filter_error error;
    struct filter_json text;
    struct sl_filter *filter;
    int r;

    if (!json_is_object(json))
        return http_refuse(refusal, 400, "no_filter", "filter",
                           "subscribe needs a filter, as in {\"op\":\"subscribe\",\"id\":\"a\","
                           "\"filter\":{\"track\":\"tea\"}}");
    r = filter_json_members(json, &text, &error);
    if (r == 0)
        r = sl_filter_new_warned(&text.text, &limits, &filter, &error, ret_warnings);
    if (r == -EINVAL)
        return filter_json_refuse(&error, refusal);
    if (r < 0)
        return r;
    if (!rule_set_has(websocket->stream.own.rules, id) &&
        opened_streams_and_rules(&websocket->stream) >= limits.rules)
        r = http_refuse(refusal, 413, "too_many_rules", "rules", "too many rules for this token");
    else
        r = stream_filter_permitted(&request->token, filter, refusal);
    if (r == 0)
        r = take_filter(websocket, id, filter, refusal);
    if (r < 0) {
        sl_filter_unref(filter);
        return r;
    }
    *ret_filter = filter;
    *ret_tag = text.tag;
    return 0;
}

/* `warnings` NULL: none. */
static void say_done(struct websocket *websocket, const char *op, struct sl_slice id,
                     const struct sl_filter_warnings *warnings)
{
    struct buffer json = BUFFER_INIT;

    begin_answer(&json, op, id);
    for (size_t i = 0; warnings && i < warnings->count; i++) {
        buffer_append_str(&json, i == 0 ? ",\"warnings\":[{" : ",{");
        filter_json_append_warning(&warnings->list[i], &json);
        buffer_append_str(&json, i + 1 < warnings->count ? "}" : "}]");
    }
    buffer_append_char(&json, '}');
    say(websocket, &json);
    buffer_done(&json);
}

static int subscribe(struct websocket *websocket, const json_t *message, struct sl_slice id,
                     struct http_refusal *refusal)
{
    struct sl_filter_warnings warnings;
    struct sl_filter *filter = NULL;
    struct sl_slice tag;
    int r;

    r = read_filter(websocket, message, id, &filter, &tag, &warnings, refusal);
    if (r < 0)
        return r;
    r = rule_set_put(websocket->stream.own.rules, id, tag, filter);
    if (r == 0)
        stream_audit_filter(&websocket->stream.own, "filter_add", id, filter);
    sl_filter_unref(filter);
    settle_filters(websocket); /* nothing was added if it failed */
    if (r < 0)
        return r;
    say_done(websocket, "subscribed", id, &warnings);
    user_questions_add(&websocket->stream.own.user_questions, id, &warnings);
    deliver_rules_changed(&websocket->stream.own.client);
    if (!json_is_true(json_object_get(message, "more")))
        deliver_rules_ready(&websocket->stream.own.client);
    return 0;
}

static int unsubscribe(struct websocket *websocket, const json_t *message, struct sl_slice id,
                       struct http_refusal *refusal)
{
    (void)message;
    if (rule_set_remove(websocket->stream.own.rules, id) < 0)
        return http_refuse(refusal, 404, "no_such_filter", "id", "no subscription has this id");
    stream_audit_filter(&websocket->stream.own, "filter_remove", id, NULL);
    settle_filters(websocket);
    deliver_rules_changed(&websocket->stream.own.client);
    say_done(websocket, "unsubscribed", id, NULL);
    return 0;
}

static void append_opened(const struct stream *stream, struct buffer *json)
{
    const char *separator = "";

    buffer_append_str(json, ",\"streams\":[");
    LIST_EACH(&stream->channels, node)
    {
        const struct channel *channel = LIST_OWNER(node, struct channel, node);

        if (!channel_is_opened(channel))
            continue;
        buffer_append_format(json, "%s{\"id\":\"%.*s\",\"stream\":\"%s\"}", separator,
                             SL_SLICE_ARG(channel_name(channel)),
                             stream_kind_name(channel->request.stream));
        separator = ",";
    }
    buffer_append_char(json, ']');
}

static int list(struct websocket *websocket, const json_t *message, struct sl_slice id,
                struct http_refusal *refusal)
{
    struct buffer json = BUFFER_INIT;
    const struct named_rule *rule;

    (void)message;
    (void)refusal;
    begin_answer(&json, "list", id);
    buffer_append_str(&json, ",\"rules\":[");
    for (size_t i = 0; (rule = rule_set_at(websocket->stream.own.rules, i)); i++) {
        buffer_append_str(&json, i ? ",{\"id\":" : "{\"id\":");
        buffer_append_json_string(&json, sl_slice_str(rule->id));
        if (rule->tag) {
            buffer_append_str(&json, ",\"tag\":");
            buffer_append_json_string(&json, sl_slice_str(rule->tag));
        }
        buffer_append_char(&json, '}');
    }
    buffer_append_char(&json, ']');
    if (websocket->stream.own.request.stream == STREAM_MANY)
        append_opened(&websocket->stream, &json);
    buffer_append_char(&json, '}');
    say(websocket, &json);
    buffer_done(&json);
    return 0;
}

static int set_fields(struct websocket *websocket, const json_t *message, struct sl_slice id,
                      struct http_refusal *refusal)
{
    const json_t *names = json_object_get(message, "fields");
    struct buffer json = BUFFER_INIT;
    uint64_t fields;

    if (websocket->stream.own.request.stream == STREAM_COUNTS)
        return http_refuse(refusal, 400, "bad_fields", "fields", "counts have no fields");
    if (!json_is_string(names))
        return http_refuse(refusal, 400, "bad_fields", "fields",
                           "names of members in a string, as in "
                           "{\"op\":\"fields\",\"fields\":\"text,user.login\"}");
    if (stream_fields_read(sl_slice(json_string_value(names), json_string_length(names)), &fields,
                           refusal) < 0)
        return -EPROTO;
    deliver_set_fields(&websocket->stream.own.client, fields);
    begin_answer(&json, "fields", id);
    buffer_append_str(&json, ",\"fields\":\"");
    event_fields_print(fields, &json);
    buffer_append_str(&json, "\"}");
    say(websocket, &json);
    buffer_done(&json);
    return 0;
}

static int open_stream(struct websocket *websocket, const json_t *message, struct sl_slice id,
                       struct http_refusal *refusal)
{
    const json_t *path = json_object_get(message, "path");
    struct sl_filter_warnings *warnings;
    struct channel *channel;
    int r;

    if (!json_is_string(path))
        return http_refuse(refusal, 400, "no_path", "path",
                           "open needs the path of a stream, as in {\"op\":\"open\",\"id\":\"a\","
                           "\"path\":\"/v1/stream/filter?track=tea\"}");
    r = opened_streams_open(&websocket->stream, id,
                            sl_slice(json_string_value(path), json_string_length(path)), &channel,
                            refusal);
    if (r < 0)
        return r;
    warnings = channel_take_warnings(channel);
    say_done(websocket, "opened", id, warnings);
    mem_free(warnings);
    stream_arm(&websocket->stream);
    return channel_resume(channel);
}

static int close_stream(struct websocket *websocket, const json_t *message, struct sl_slice id,
                        struct http_refusal *refusal)
{
    struct channel *channel = opened_streams_find(&websocket->stream, id);

    (void)message;
    if (!channel)
        return http_refuse(refusal, 404, "no_such_stream", "id", "no open stream has this id");
    opened_streams_close(channel);
    say_done(websocket, "closed", id, NULL);
    return 0;
}

/* The answer contains nothing of the token. */
static int renew(struct websocket *websocket, const json_t *message, struct sl_slice id,
                 struct http_refusal *refusal)
{
    const json_t *jwt = json_object_get(message, "token");
    char expires[CLOCK_RFC3339_SIZE];
    struct buffer json = BUFFER_INIT;
    int r;

    if (!json_is_string(jwt))
        return http_refuse(refusal, 400, "no_token", "token",
                           "token needs a token, as in {\"op\":\"token\",\"token\":\"eyJ...\"}");
    r = stream_renew_by(&websocket->stream,
                        sl_slice(json_string_value(jwt), json_string_length(jwt)), refusal);
    if (r < 0)
        return r;
    clock_format_rfc3339(websocket->stream.own.request.token.expires_ms, expires);
    begin_answer(&json, "renewed", id);
    buffer_append_format(&json, ",\"expires\":\"%s\"}", expires);
    say(websocket, &json);
    buffer_done(&json);
    return 0;
}

static const struct {
    const char *op;
    bool needs_id;
    bool is_of_many; /* on /v1/stream only */
    int (*run)(struct websocket *websocket, const json_t *message, struct sl_slice id,
               struct http_refusal *refusal);
} operations[] = {
    {"subscribe", true, false, subscribe}, {"unsubscribe", true, false, unsubscribe},
    {"list", false, false, list},          {"fields", false, false, set_fields},
    {"open", true, true, open_stream},     {"close", true, true, close_stream},
    {"token", false, false, renew},
};

/* 0; -EPROTO: *refusal is set; -ENOMEM. *ret_op and *ret_id are set if the message has them. */
static int run(struct websocket *websocket, const json_t *message, const char **ret_op,
               struct sl_slice *ret_id, struct http_refusal *refusal)
{
    const char *op = json_string_value(json_object_get(message, "op"));
    const json_t *id = json_object_get(message, "id");
    bool is_many = websocket->stream.own.request.stream == STREAM_MANY;
    struct sl_filter_error error;

    for (size_t i = 0; op && i < sizeof(operations) / sizeof(operations[0]); i++) {
        if (strcmp(op, operations[i].op) != 0 || (operations[i].is_of_many && !is_many))
            continue;
        *ret_op = operations[i].op;
        if ((operations[i].needs_id || id) && filter_json_id(id, ret_id, &error) < 0)
            return filter_json_refuse(&error, refusal);
        return operations[i].run(websocket, message, *ret_id, refusal);
    }
    return http_refuse(refusal, 400, "unknown_op", "op",
                       is_many
                           ? "op must be subscribe, unsubscribe, list, fields, open, close or token"
                           : "op must be subscribe, unsubscribe, list, fields or token");
}

void named_filters_message(struct websocket *websocket, struct sl_slice text)
{
    struct sl_slice id = SL_SLICE_NONE;
    struct http_refusal refusal;
    struct sl_filter_error error;
    const char *op = NULL;
    json_t *message;
    int r;

    deliver_client_flush(&websocket->stream.own.client); /* they were matched by the old filters */
    r = filter_json_load(text, &message, &error);
    if (r == -EINVAL || (r == 0 && !json_is_object(message))) {
        http_refuse(&refusal, 400, "bad_json", NULL, "not a JSON object");
        if (r == 0)
            json_decref(message);
        say_refusal(websocket, NULL, SL_SLICE_NONE, &refusal);
        return;
    }
    if (r == 0) {
        r = run(websocket, message, &op, &id, &refusal);
        if (r == -EPROTO) {
            if (!op || strcmp(op, "token") != 0) /* which has its own line */
                stream_audit_refused(&websocket->stream, &refusal);
            say_refusal(websocket, op, id, &refusal);
        }
        json_decref(message);
    }
    if (r == -ENOMEM)
        stream_evict(&websocket->stream, DISCONNECT_INTERNAL);
}

void named_filters_token_message(struct websocket *websocket, struct sl_slice text)
{
    struct http_refusal refusal;
    struct sl_filter_error error;
    const char *op;
    json_t *message;
    int r = filter_json_load(text, &message, &error);

    if (r == 0) {
        op = json_string_value(json_object_get(message, "op"));
        if (op && strcmp(op, "token") == 0)
            r = renew(websocket, message, SL_SLICE_NONE, &refusal);
        else
            r = -EINVAL;
        if (r == -EPROTO)
            say_refusal(websocket, "token", SL_SLICE_NONE, &refusal);
        json_decref(message);
    }
    if (r == -EINVAL)
        stream_evict(&websocket->stream, DISCONNECT_UNHEARD);
    else if (r == -ENOMEM)
        stream_evict(&websocket->stream, DISCONNECT_INTERNAL);
}
