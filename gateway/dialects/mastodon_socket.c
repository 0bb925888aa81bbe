/* mastodon_socket.c - the WebSocket of Mastodon's streaming API.
 *
 *     {"type":"subscribe","stream":"hashtag","tag":"tea"}
 *     {"type":"unsubscribe","stream":"hashtag","tag":"tea"}
 *
 * Neither is answered, unless it is refused; what is nothing of the kind is passed over. An event
 * ends with the stream it belongs to, in the words of who subscribed: ["hashtag","tea"]. Clients
 * compare that with what they have said, so each way to say it is a stream of its own. */
#include "gateway/dialects/mastodon_socket.h"

#include <errno.h>
#include <jansson.h>

#include "base/alloc.h"
#include "gateway/dialects/event_json.h"
#include "gateway/dialects/mastodon_form.h"
#include "gateway/http/form.h"
#include "gateway/http/websocket_reader.h"

enum parameter { PARAMETER_STREAM, PARAMETER_TAG, PARAMETERS };

static const char *const names[PARAMETERS] = {"stream", "tag"};

/* --- the token ------------------------------------------------------------------------------- */

/* Without a header of its own, in the URL, or as the whole of Sec-WebSocket-Protocol: a browser can
 * send no other header. */
int mastodon_find_token(const struct dialect_request *request, struct sl_slice *ret_jwt,
                        struct http_refusal *refusal)
{
    struct sl_slice protocols = request->http->protocols;

    (void)refusal;
    if (!request->http->is_upgrade || request->http->authorization.data)
        return 0;
    *ret_jwt = dialect_query_token(request->http);
    if (!ret_jwt->data && protocols.data)
        *ret_jwt = http_next_element(&protocols, ',');
    return 0;
}

/* --- streams --------------------------------------------------------------------------------- */

int mastodon_check_tag(struct sl_slice tag, struct http_refusal *refusal)
{
    if (sl_slice_starts_with(tag, SL_SLICE("#")))
        tag = sl_slice_from(tag, 1);
    if (tag.size > 0 && tag.size <= MASTODON_TAG_MAX_BYTES && !memchr(tag.data, ',', tag.size) &&
        !memchr(tag.data, ' ', tag.size))
        return 0;
    return http_refuse(refusal, 400, "bad_tag", "tag", "tag is one hashtag");
}

static int find_stream(struct sl_slice name, enum stream_kind *ret_stream,
                       struct http_refusal *refusal)
{
    static const struct {
        const char *name;
        enum stream_kind stream;
    } rows[] = {
        {"public", STREAM_FIREHOSE}, {"public:local", STREAM_FIREHOSE},
        {"hashtag", STREAM_FILTER},  {"hashtag:local", STREAM_FILTER},
        {"user", STREAM_HOME},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (sl_slice_is(name, rows[i].name)) {
            *ret_stream = rows[i].stream;
            return 0;
        }
    }
    return http_refuse(refusal, 400, "unknown_stream", "stream", "Unknown stream type");
}

/* `,"stream":["hashtag","tea"]`, and behind it `#tea`: *ret_size bytes are the first. */
static char *print(struct sl_slice name, struct sl_slice tag, size_t *ret_size, size_t *ret_all)
{
    struct buffer text = BUFFER_INIT;
    char *copy;

    buffer_append_str(&text, ",\"stream\":[");
    buffer_append_json_string(&text, name);
    if (tag.data) {
        buffer_append_char(&text, ',');
        buffer_append_json_string(&text, tag);
    }
    buffer_append_char(&text, ']');
    *ret_size = text.size;
    if (tag.size > 0 && tag.data[0] != '#')
        buffer_append_char(&text, '#');
    buffer_append_slice(&text, tag);
    *ret_all = text.size;
    copy = text.failed ? NULL : mem_strndup(text.data, text.size);
    buffer_done(&text);
    return copy;
}

static int ask(struct sl_slice name, struct sl_slice tag, struct dialect_stream *asked,
               struct http_refusal *refusal)
{
    size_t size, all;

    *asked = (struct dialect_stream){
        .format = FORMAT_WEBSOCKET, .options = MASTODON_ON_WEBSOCKET, .again = DIALECT_KEEPS};
    if (find_stream(name, &asked->stream, refusal) < 0)
        return -EPROTO;
    if (asked->stream != STREAM_FILTER)
        tag = SL_SLICE_NONE;
    else if (mastodon_check_tag(tag, refusal) < 0)
        return -EPROTO;
    asked->memory = print(name, tag, &size, &all);
    if (!asked->memory)
        return -ENOMEM;
    asked->name = asked->tail = sl_slice(asked->memory, size);
    if (tag.data)
        dialect_ask(asked, "track", sl_slice(asked->memory + size, all - size));
    return 0;
}

/* Parameters that are not known count for nothing, and without `stream` there are only messages. */
int mastodon_open(const struct dialect_request *request, struct dialect_stream *ret_asked,
                  struct http_refusal *refusal)
{
    struct sl_slice values[PARAMETERS];
    struct form form = {names, PARAMETERS, values, NULL};
    int r = dialect_read_form(request, &form, refusal);

    *ret_asked = (struct dialect_stream){.first = DIALECT_IDLES};
    if (r == 0 && values[PARAMETER_STREAM].data)
        r = ask(values[PARAMETER_STREAM], values[PARAMETER_TAG], ret_asked, refusal);
    form_done(&form);
    return r;
}

/* --- messages -------------------------------------------------------------------------------- */

static int read_message(const json_t *json, struct dialect_message *message,
                        struct http_refusal *refusal)
{
    struct sl_slice type = event_json_text(json, "type");

    if (sl_slice_is(type, "subscribe"))
        message->act = DIALECT_OPEN;
    else if (sl_slice_is(type, "unsubscribe"))
        message->act = DIALECT_CLOSE;
    else
        return 0;
    return ask(event_json_text(json, "stream"), event_json_text(json, "tag"), &message->asked,
               refusal);
}

int mastodon_hear(struct sl_slice text, const struct stream_times *times,
                  struct dialect_message *ret_message, struct http_refusal *refusal)
{
    json_t *json = json_loadb(text.data, text.size, 0, NULL);
    int r;

    (void)times;
    *ret_message = (struct dialect_message){.act = DIALECT_IGNORE};
    if (!json)
        return 0;
    r = read_message(json, ret_message, refusal);
    json_decref(json);
    return r;
}

void mastodon_complain(const struct http_refusal *refusal, struct buffer *ret_text)
{
    buffer_append_str(ret_text, "{\"error\":");
    buffer_append_json_string(ret_text, sl_slice_str(refusal->message));
    buffer_append_format(ret_text, ",\"status\":%d}", refusal->status);
}

/* Whoever lost the token is told nothing, as there. Nothing is 1000, behind which some clients stay
 * away for good. */
struct dialect_close mastodon_close_of(enum disconnect_reason why)
{
    const struct disconnect_row *row = disconnect_row(why);

    if (why == DISCONNECT_TOKEN_REVOKED || why == DISCONNECT_TOKEN_EXPIRED)
        return (struct dialect_close){WEBSOCKET_CLOSE_NO_STATUS, ""};
    return (struct dialect_close){row->close_code, row->code};
}
