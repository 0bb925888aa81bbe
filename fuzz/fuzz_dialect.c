/* fuzz_dialect.c - are requests of clients of dialects parsed or refused as documented, and every
 * event printed for them?
 *
 * The first byte is the dialect, the second its route, each modulo how many there are. The third
 * says what the rest is: 0x80 an event, which each dialect prints, with the fourth byte as options;
 * 0x40 a message on a WebSocket; otherwise a request, whose fields are each terminated by a
 * newline: query, Authorization, Sec-WebSocket-Protocol, Last-Event-ID, Content-Type, body. 0x01 a
 * POST, 0x02 a valid token, 0x04 the same in a header of OAuth 1.0a, 0x08 no other subscription
 * exists, 0x10 over TLS, 0x20 a DELETE. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "fuzz/front.h"
#include "gateway/dialects/dialects.h"
#include "gateway/front/bearer.h"
#include "gateway/front/event_fields.h"
#include "gateway/front/subject_rules.h"
#include "gateway/intake/event_decode.h"

#define NOW_MS UINT64_C(1800000000000)

enum {
    FLAG_POST = 0x01,
    FLAG_TOKEN = 0x02,
    FLAG_OAUTH = 0x04,
    FLAG_PRIVATE = 0x08,
    FLAG_SECURE = 0x10,
    FLAG_DELETE = 0x20,
    FLAG_MESSAGE = 0x40,
    FLAG_EVENT = 0x80
};

static struct front_settings settings = {.max_gather_ms = 1000, .dialects = ~0u};
static struct buffer bearer, oauth; /* with a token that may do everything, in small amounts */
static const struct stream_times times = {.now_ms = NOW_MS};

static void set_up(void)
{
    static const char claims[] =
        "{\"exp\":1800003600,\"sub\":\"1\",\"lim\":{\"track\":3,\"follow\":3,\"boxes\":2,"
        "\"sample\":50},\"scope\":\"stream:filter stream:sample stream:firehose stream:home\"}";

    settings.policy = front_policy((struct token_policy_settings){0});
    buffer_append_str(&bearer, "Bearer ");
    front_sign(SL_SLICE("{\"alg\":\"HS256\"}"), sl_slice_str(claims), &bearer);
    buffer_append_str(&oauth, "OAuth oauth_nonce=\"n\", oauth_token=\"");
    buffer_append_slice(&oauth, sl_slice_from(buffer_slice(&bearer), strlen("Bearer ")));
    buffer_append_str(&oauth, "\", oauth_signature=\"s%3D\"");
}

/* --- requests --- */

static void check_refusal(const struct dialect *dialect, const struct http_request *http,
                          const struct http_refusal *refusal)
{
    struct http_answer answer = {.status = refusal->status};
    struct buffer body = BUFFER_INIT;

    must(refusal->message[0] != '\0');
    dialect->refuse(http, refusal, &body, &answer);
    must(!body.failed && answer.content_type);
    must(answer.status >= 400 && answer.status < 600);
    if (strstr(answer.content_type, "json")) {
        json_t *json = json_loadb(body.data, body.size, JSON_REJECT_DUPLICATES, NULL);

        must(json_is_object(json));
        json_decref(json);
    }
    buffer_done(&body);
}

static void check_stream(const struct dialect *dialect, const struct dialect_stream *asked,
                         struct stream_request *request)
{
    uint64_t fields = event_fields_of_dialect(dialect->id, asked->options);

    must(event_fields_dialect(fields) == dialect->id);
    must(event_fields_options(fields) == asked->options);
    must(!!request->filter ==
         (request->stream != STREAM_HOME && !stream_request_takes_rules(request)));
    must(request->format == asked->format && request->token.expires_ms > NOW_MS);
    stream_request_done(request);
}

static void read_stream(const struct dialect *dialect, const struct dialect_route *route,
                        const struct dialect_request *asking)
{
    struct dialect_stream asked = {0};
    struct sl_slice jwt = SL_SLICE_NONE;
    struct stream_request request;
    struct http_refusal refusal;
    enum token_fault fault;
    int r = dialect->find_token ? dialect->find_token(asking, &jwt, &refusal) : 0;

    if (r == 0)
        r = route->read(asking, &asked, &refusal);
    if (r == 0)
        r = stream_request_read_asked(&settings, &asked, jwt, asking->http, &times, &request,
                                      &refusal, &fault);
    must(r == 0 || r == -EPROTO);
    if (r == 0)
        check_stream(dialect, &asked, &request);
    else
        check_refusal(dialect, asking->http, &refusal);
    dialect_stream_done(&asked);
}

static void answer(const struct dialect *dialect, const struct dialect_route *route,
                   const struct dialect_request *asking)
{
    struct http_answer answer = {.status = 200, .content_type = "application/json"};
    struct buffer body = BUFFER_INIT;
    struct http_refusal refusal;
    int r = route->answer(asking, &body, &answer, &refusal);

    must(!body.failed);
    must(r == 0 || r == -EPROTO);
    if (r < 0)
        check_refusal(dialect, asking->http, &refusal);
    buffer_done(&body);
}

/* --- stored rules of subjects --- */

static void check_answer(const struct dialect_rules *rules, void *asked)
{
    struct http_answer answer = {.status = 0};
    struct buffer body = BUFFER_INIT;
    json_t *json;

    must(rules->answer(asked, 7, &body, &answer) == 0 && !body.failed);
    must(answer.status >= 200 && answer.status < 500);
    json = json_loadb(body.data, body.size, JSON_REJECT_DUPLICATES, NULL);
    must(json_is_object(json_object_get(json, "meta")));
    json_decref(json);
    buffer_done(&body);
}

/* A rule that was accepted is accepted later, too. */
static void check_added(const struct dialect *dialect, const struct token *token,
                        const struct rules_change *change)
{
    struct subject_rules added = {.list = NULL};
    struct http_refusal refusal;
    struct sl_filter *filter;

    for (size_t i = 0; i < change->added_count; i++)
        must(subject_rules_add(&added, i + 1, change->added[i]) == 0);
    for (size_t i = 0; i < added.count; i++) {
        must(dialect->read_rule(&added.list[i], token, &filter, &refusal) == 0);
        sl_filter_unref(filter);
    }
    subject_rules_done(&added);
}

static void decide(const struct dialect *dialect, const struct dialect_rules *rules, void *asked,
                   const struct token *token)
{
    struct subject_rules kept = {.version = 1, .list = NULL};

    must(subject_rules_add(&kept, 1, SL_SLICE("{\"value\":\"cat\",\"tag\":\"cats\"}")) == 0);
    must(subject_rules_add(&kept, 20, SL_SLICE("{\"value\":\"dog\"}")) == 0);
    for (int i = 0; i < 2; i++) { /* the stored rules had changed meanwhile */
        struct rules_change change = {.added_count = 0};

        must(rules->decide(asked, &kept, &change) == 0);
        must(change.removed_count <= kept.count);
        check_added(dialect, token, &change);
    }
    check_answer(rules, asked);
    subject_rules_done(&kept);
}

static void ask_rules(const struct dialect *dialect, const struct dialect_rules *rules,
                      const struct dialect_request *asking)
{
    struct http_refusal refusal;
    struct token token;
    void *asked = mem_zalloc(rules->asked_size);
    int r = bearer_check(settings.policy, asking->http, SL_SLICE_NONE, NOW_MS, &token, &refusal,
                         asking->fault);

    if (r == 0)
        r = rules->read(asking, &token, asked, &refusal);
    must(r == 0 || r == -EPROTO);
    if (r == 0)
        decide(dialect, rules, asked, &token);
    else
        check_refusal(dialect, asking->http, &refusal);
    rules->done(asked);
    mem_free(asked);
}

/* Requests about connections, and what would be answered about one. */
static void query_connections(const struct dialect *dialect, const struct dialect_route *route,
                              const struct dialect_request *asking)
{
    const struct dialect_connection one = {
        .id = "00000000000000000000000000000001", .path = "/v1/stream", .address = ""};
    const struct dialect_connection_result result = {
        .connections = &one, .count = 1, .not_ended = 1, .has_more = true};
    struct dialect_connection_query *query = mem_zalloc(sizeof(*query));
    struct buffer body = BUFFER_INIT;
    struct http_refusal refusal;
    int r = route->connections->read(asking, query, &refusal);

    must(r == 0 || r == -EPROTO);
    if (r < 0) {
        check_refusal(dialect, asking->http, &refusal);
    } else {
        json_t *json;

        must(query->id_count <= DIALECT_CONNECTIONS_MAX);
        must(query->max <= DIALECT_CONNECTIONS_MAX);
        route->connections->wants(query, one.path);
        must(route->connections->answer(query, &result, &body) == 0);
        json = json_loadb(body.data, body.size, JSON_REJECT_DUPLICATES, NULL);
        must(json_is_object(json));
        json_decref(json);
    }
    buffer_done(&body);
    mem_free(query);
}

/* --- WebSockets --- */

/* A WebSocket opened with a valid token. */
static void read_connection(struct stream_request *ret_connection)
{
    const struct dialect_stream asked = {.stream = STREAM_MANY, .format = FORMAT_WEBSOCKET};
    const struct http_request http = {.authorization = buffer_slice(&bearer), .is_upgrade = true};
    struct http_refusal refusal;
    enum token_fault fault;

    must(stream_request_read_asked(&settings, &asked, SL_SLICE_NONE, &http, &times, ret_connection,
                                   &refusal, &fault) == 0);
}

static int open_asked(const struct dialect *dialect, const struct dialect_stream *asked,
                      struct http_refusal *refusal)
{
    struct stream_request connection, request;
    int r;

    read_connection(&connection);
    r = stream_request_read_asked_opened(&settings, &connection, asked, &times, &request, refusal);
    if (r == 0)
        check_stream(dialect, asked, &request);
    stream_request_done(&connection);
    return r;
}

static void refuse_message(const struct dialect *dialect, const struct http_refusal *refusal)
{
    struct buffer text = BUFFER_INIT;

    if (dialect->print_refusal)
        dialect->print_refusal(refusal, &text);
    if (text.size > 0) {
        json_t *json = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, NULL);

        must(json_is_object(json));
        json_decref(json);
    }
    buffer_done(&text);
}

static void open_socket(const struct dialect *dialect, const struct dialect_route *route,
                        const struct dialect_request *asking)
{
    struct dialect_stream asked = {0};
    struct http_refusal refusal;
    int r = route->open(asking, &asked, &refusal);

    if (r == 0 && asked.first != DIALECT_IDLES)
        r = open_asked(dialect, &asked, &refusal);
    must(r == 0 || r == -EPROTO);
    if (r < 0) {
        check_refusal(dialect, asking->http, &refusal);
        refuse_message(dialect, &refusal);
    }
    dialect_stream_done(&asked);
}

static void hear(const struct dialect *dialect, struct sl_slice text)
{
    struct dialect_message message = {.act = DIALECT_IGNORE};
    struct http_refusal refusal;
    int r = dialect->hear(text, &times, &message, &refusal);

    if (r == 0 && message.act == DIALECT_OPEN)
        r = open_asked(dialect, &message.asked, &refusal);
    must(r == 0 || r == -EPROTO);
    if (r < 0)
        refuse_message(dialect, &refusal);
    dialect_stream_done(&message.asked);
}

/* --- events --- */

/* Checks that it is a line, a block for Server-Sent Events, or nothing. */
static void check_said(const struct event *event, struct sl_slice said)
{
    const char *data = said.data;
    json_t *json;

    if (said.size == 0)
        return;
    must(!memchr(data, '\r', said.size) && !memchr(data, '\0', said.size));
    if (data[0] != '{') {
        must(said.size > 2 && memcmp(data + said.size - 2, "\n\n", 2) == 0);
        return;
    }
    must(!memchr(data, '\n', said.size));
    json = json_loadb(data, said.size, 0, NULL);
    must(json_is_object(json));
    if (event->kind == EVENT_POST && json_object_get(json, "id_str")) {
        const char *id = json_string_value(json_object_get(json, "id_str"));

        must(id && strtoull(id, NULL, 10) == event->view.sample_id);
        must(json_is_string(json_object_get(json, "text")));
    }
    json_decref(json);
}

static void say(struct sl_slice text, uint64_t options)
{
    static const struct event_origin nowhere;
    struct event_decoder *decoder = event_decoder_new(SIZE_MAX);
    struct event *event = NULL;
    struct failure failure;

    if (event_decode(decoder, text, &nowhere, &event, &failure) == 0) {
        for (unsigned i = 0; i < DIALECT_COUNT; i++) {
            struct buffer said = BUFFER_INIT;

            must(dialects[i]->render(event, options, &said) == 0 && !said.failed);
            check_said(event, buffer_slice(&said));
            buffer_done(&said);
        }
    }
    event_unref(event);
    event_decoder_free(decoder);
}

/* --- the entry point --- */

static struct sl_slice next_field(const uint8_t **data, size_t *size)
{
    const uint8_t *end = memchr(*data, '\n', *size);
    size_t length = end ? (size_t)(end - *data) : *size;
    struct sl_slice field = sl_slice(mem_copy(*data, length), length);

    *data += length + (end ? 1 : 0);
    *size -= length + (end ? 1 : 0);
    return field;
}

static void ask(const struct dialect *dialect, const struct dialect_route *route, uint8_t flags,
                const uint8_t *data, size_t size)
{
    struct http_request http = {.method = flags & FLAG_POST     ? HTTP_POST
                                          : flags & FLAG_DELETE ? HTTP_DELETE
                                                                : HTTP_GET,
                                .path = sl_slice_str(route->path),
                                .host = SL_SLICE("social.example:8080")};
    struct sl_slice *const fields[] = {&http.query,         &http.authorization, &http.protocols,
                                       &http.last_event_id, &http.content_type,  &http.body};
    struct sl_slice memory[sizeof(fields) / sizeof(fields[0])];
    struct buffer room = BUFFER_INIT;
    enum token_fault fault = TOKEN_OK;
    const struct dialect_request asking = {.http = &http,
                                           .front = &settings,
                                           .times = times,
                                           .is_secure = flags & FLAG_SECURE,
                                           .fault = &fault,
                                           .is_private = flags & FLAG_PRIVATE,
                                           .room = &room};

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        memory[i] = next_field(&data, &size);
        *fields[i] = memory[i].size > 0 || i == 0 ? memory[i] : SL_SLICE_NONE;
    }
    if (flags & (FLAG_TOKEN | FLAG_OAUTH))
        http.authorization = buffer_slice(flags & FLAG_OAUTH ? &oauth : &bearer);
    if (route->answer)
        answer(dialect, route, &asking);
    if (route->read)
        read_stream(dialect, route, &asking);
    if (route->rules)
        ask_rules(dialect, route->rules, &asking);
    if (route->connections)
        query_connections(dialect, route, &asking);
    http.is_upgrade = true;
    if (route->open)
        open_socket(dialect, route, &asking);
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        mem_free((char *)memory[i].data);
    buffer_done(&room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct dialect *dialect;
    struct sl_slice rest;

    if (!settings.policy)
        set_up();
    if (size < 4)
        return 0;
    dialect = dialects[data[0] % DIALECT_COUNT];
    rest = sl_slice((const char *)data + 4, size - 4);
    if (data[2] & FLAG_EVENT)
        say(rest, data[3]);
    else if (data[2] & FLAG_MESSAGE && dialect->hear)
        hear(dialect, rest);
    else
        ask(dialect, &dialect->routes[data[1] % dialect->route_count], data[2], data + 4, size - 4);
    return 0;
}
