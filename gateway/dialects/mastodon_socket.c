/* mastodon_socket.c - the WebSocket of Mastodon's streaming API.
 *
 *     {"type":"subscribe","stream":"hashtag","tag":"tea"}
 *     {"type":"unsubscribe","stream":"hashtag","tag":"tea"}
 *
 * These are answered only if they are refused; other messages are ignored. An event ends with the
 * name of its stream as the client wrote it: ["hashtag","tea"]. Clients compare this with what they
 * sent, so each spelling is a stream of its own. */
#include "gateway/dialects/mastodon_socket.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>

#include "base/alloc.h"
#include "gateway/dialects/event_json.h"
#include "gateway/dialects/mastodon_form.h"
#include "gateway/dialects/mastodon_streams.h"
#include "gateway/http/form.h"
#include "gateway/http/websocket_reader.h"

enum parameter { PARAMETER_LIST, PARAMETER_STREAM, PARAMETER_TAG, PARAMETERS };

static const char *const names[PARAMETERS] = {"list", "stream", "tag"};

/* --- the token ------------------------------------------------------------------------------- */

/* The token is in a header, in the URL, or is the whole of Sec-WebSocket-Protocol, because a
 * browser can send no other header. */
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

/* Prints `,"stream":["hashtag","tea"]`, with which all events of the stream end. A tag is left out
 * for streams that have none: it could be of any length, and would make the stream a different
 * one. */
static int print_tail(const struct mastodon_selection *selection, struct dialect_stream *asked,
                      struct buffer *text)
{
    bool has_tag = asked->parameter_count > 0 && !(asked->options & MASTODON_SILENT);

    buffer_append_str(text, ",\"stream\":[");
    buffer_append_json_string(text, selection->name);
    if (has_tag) {
        buffer_append_char(text, ',');
        buffer_append_json_string(text, selection->tag);
    }
    buffer_append_char(text, ']');
    return text->failed ? -ENOMEM : 0;
}

static int ask(const struct mastodon_selection *selection, struct dialect_stream *asked,
               struct http_refusal *refusal)
{
    struct buffer tail = BUFFER_INIT;
    int r;

    *asked = (struct dialect_stream){
        .format = FORMAT_WEBSOCKET, .options = MASTODON_ON_WEBSOCKET, .again = DIALECT_KEEPS};
    static_assert(MASTODON_ROOM_SIZE <= sizeof(asked->room), "there is room for a tag");
    r = mastodon_ask(selection, asked, asked->room, refusal);
    if (r == 0)
        r = print_tail(selection, asked, &tail);
    if (r == 0)
        asked->memory = mem_strndup(tail.data, tail.size);
    if (r == 0 && !asked->memory)
        r = -ENOMEM;
    asked->name = asked->tail = sl_slice(asked->memory, tail.size);
    buffer_done(&tail);
    return r;
}

/* Unknown parameters are ignored, and without `stream` streams are opened only by messages. */
int mastodon_open(const struct dialect_request *request, struct dialect_stream *ret_asked,
                  struct http_refusal *refusal)
{
    struct sl_slice values[PARAMETERS];
    struct form form = {names, PARAMETERS, values, NULL};
    int r = dialect_read_form(request, &form, refusal);

    *ret_asked = (struct dialect_stream){.first = DIALECT_IDLES};
    if (r == 0 && values[PARAMETER_STREAM].data)
        r = ask(&(struct mastodon_selection){.name = values[PARAMETER_STREAM],
                                             .tag = values[PARAMETER_TAG],
                                             .list = values[PARAMETER_LIST]},
                ret_asked, refusal);
    form_done(&form);
    return r;
}

/* --- messages -------------------------------------------------------------------------------- */

/* `"public"` or `["public"]`. */
static struct sl_slice stream_name(const json_t *message)
{
    const json_t *first = json_array_get(json_object_get(message, "stream"), 0);

    if (!json_is_string(first))
        return event_json_text(message, "stream");
    return sl_slice(json_string_value(first), json_string_length(first));
}

static int read_message(const json_t *json, struct dialect_message *message,
                        struct http_refusal *refusal)
{
    const struct mastodon_selection selection = {.name = stream_name(json),
                                                 .tag = event_json_text(json, "tag"),
                                                 .list = event_json_text(json, "list")};
    struct sl_slice type = event_json_text(json, "type");

    if (sl_slice_is(type, "subscribe"))
        message->act = DIALECT_OPEN;
    else if (sl_slice_is(type, "unsubscribe"))
        message->act = DIALECT_CLOSE;
    else
        return 0;
    return ask(&selection, &message->asked, refusal);
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

void mastodon_print_refusal(const struct http_refusal *refusal, struct buffer *ret_text)
{
    struct mastodon_error error = mastodon_error_of(refusal);

    buffer_append_str(ret_text, "{\"error\":");
    buffer_append_json_string(ret_text, error.message);
    buffer_append_format(ret_text, ",\"status\":%d}", error.status);
}

/* As in Mastodon, a connection whose token is no longer valid is closed without a code. Code 1000
 * is never used, because some clients do not reconnect after it. */
struct dialect_close mastodon_close_of(enum disconnect_reason why)
{
    const struct disconnect_row *row = disconnect_row(why);

    if (why == DISCONNECT_TOKEN_REVOKED || why == DISCONNECT_TOKEN_EXPIRED)
        return (struct dialect_close){WEBSOCKET_CLOSE_NO_STATUS, ""};
    return (struct dialect_close){row->close_code, row->code};
}
