/* fuzz_request.c - is every request for a stream parsed or refused as documented?
 *
 * The first byte chooses the stream (modulo 5) and more: 0x08 an upgrade, 0x10 a POST, 0x20 a valid
 * token in addition, 0x40 the query, after the path, is to be opened on the connection of such a
 * token. The rest are fields, each terminated by a newline: query, Accept, Authorization,
 * Sec-WebSocket-Protocol, Last-Event-ID, Content-Type, body. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "fuzz/front.h"
#include "gateway/front/event_fields.h"
#include "gateway/front/stream_request.h"

#define NOW_MS UINT64_C(1800000000000)

enum {
    FLAG_UPGRADE = 0x08,
    FLAG_POST = 0x10,
    FLAG_TOKEN = 0x20,
    FLAG_OPENED = 0x40,
    MAX_GATHER_MS = 1000
};

static struct token_policy *policy;
static struct buffer authorization; /* with a token that may do everything, in small amounts */

static void set_up(void)
{
    static const char claims[] =
        "{\"exp\":1800003600,\"sub\":\"1\",\"lim\":{\"track\":3,\"follow\":3,\"boxes\":2,"
        "\"sample\":50},\"scope\":\"stream:filter stream:sample stream:firehose stream:home\"}";

    policy = front_policy((struct token_policy_settings){0});
    buffer_append_str(&authorization, "Bearer ");
    front_sign(SL_SLICE("{\"alg\":\"HS256\"}"), sl_slice_str(claims), &authorization);
}

/* Returns the next field, in memory of exactly its size. */
static struct sl_slice next_field(const uint8_t **data, size_t *size)
{
    const uint8_t *end = memchr(*data, '\n', *size);
    size_t length = end ? (size_t)(end - *data) : *size;
    struct sl_slice field = sl_slice(mem_copy(*data, length), length);

    *data += length + (end ? 1 : 0);
    *size -= length + (end ? 1 : 0);
    return field;
}

static void check_refusal(const struct http_refusal *refusal, enum token_fault fault)
{
    static const int statuses[] = {400, 401, 403, 404, 406, 413, 415, 426};
    bool is_known = false;

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        is_known = is_known || refusal->status == statuses[i];
    must(is_known);
    must((refusal->status == 401) ==
         (strcmp(refusal->code, "no_token") == 0 || strcmp(refusal->code, "invalid_token") == 0));
    must((fault != TOKEN_OK) == (strcmp(refusal->code, "invalid_token") == 0));
    must((refusal->status != 401 && refusal->status != 403) || refusal->www_authenticate);
    front_check_body(refusal);
}

/* Printed and parsed again, they are the same. */
static void check_fields(uint64_t fields)
{
    struct buffer text = BUFFER_INIT;
    uint64_t again = ~fields;

    event_fields_print(fields, &text);
    must(event_fields_parse(buffer_slice(&text), &again, NULL) == 0 && again == fields);
    buffer_done(&text);
}

static void check_request(const struct stream_request *request, const struct http_request *http)
{
    struct http_refusal refusal;

    must((request->format == FORMAT_WEBSOCKET) == http->is_upgrade);
    must(request->gather_ms >= -1 && request->gather_ms <= MAX_GATHER_MS);
    must(!!request->filter ==
         (request->stream != STREAM_HOME && !stream_request_takes_rules(request)));
    must((request->types == 0) == stream_request_takes_rules(request));
    must(request->since != SINCE_CURSOR || request->since_cursor.id > 0);
    must(request->token.expires_ms > NOW_MS);
    check_fields(request->fields);
    if (request->filter)
        must(stream_filter_permitted(&request->token, request->filter, &refusal) == 0);
}

static void open(const struct front_settings *settings, enum stream_kind stream,
                 struct sl_slice query)
{
    const struct http_request upgrade = {
        .method = HTTP_GET, .is_upgrade = true, .authorization = buffer_slice(&authorization)};
    const struct stream_times times = {.now_ms = NOW_MS};
    struct stream_request connection, request;
    struct buffer path = BUFFER_INIT;
    struct http_refusal refusal;
    enum token_fault fault;
    int r;

    must(stream_request_read(settings, STREAM_MANY, &upgrade, &times, &connection, &refusal,
                             &fault) == 0);
    buffer_append_format(&path, "%s?", stream_path_of(stream));
    buffer_append_slice(&path, query);
    r = stream_request_read_opened(settings, &connection, buffer_slice(&path), &times, &request,
                                   &refusal);
    must(r == 0 || r == -EPROTO);
    if (r == 0) {
        must(!stream_request_takes_rules(&request) && request.window_bits == 0);
        check_request(&request, &upgrade);
        stream_request_done(&request);
    } else {
        check_refusal(&refusal, TOKEN_OK);
    }
    stream_request_done(&connection);
    buffer_done(&path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct front_settings settings = {.max_gather_ms = MAX_GATHER_MS};
    struct http_request http = {.method = HTTP_GET};
    struct sl_slice *const fields[] = {
        &http.query,         &http.accept.lines[0], &http.authorization, &http.protocols,
        &http.last_event_id, &http.content_type,    &http.body,
    };
    struct sl_slice memory[sizeof(fields) / sizeof(fields[0])];
    const struct stream_times times = {.now_ms = NOW_MS};
    struct stream_request request;
    struct http_refusal refusal;
    enum token_fault fault;
    uint8_t flags;
    int r;

    if (!policy)
        set_up();
    settings.policy = policy;
    if (size == 0)
        return 0;
    flags = *data++;
    size--;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        *fields[i] = memory[i] = next_field(&data, &size);
    http.is_upgrade = flags & FLAG_UPGRADE;
    if ((flags & FLAG_POST) && !http.is_upgrade)
        http.method = HTTP_POST;
    else
        http.body = SL_SLICE_NONE;
    if (flags & FLAG_TOKEN)
        http.authorization = buffer_slice(&authorization);

    if (flags & FLAG_OPENED)
        open(&settings, (enum stream_kind)((flags & 7) % 7), http.query);
    r = stream_request_read(&settings, (enum stream_kind)((flags & 7) % 5), &http, &times, &request,
                            &refusal, &fault);
    must(r == 0 || r == -EPROTO);
    if (r == 0) {
        check_request(&request, &http);
        stream_request_done(&request);
    } else {
        check_refusal(&refusal, fault);
    }
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        mem_free((char *)memory[i].data);
    return 0;
}
