/* jetstream.c - Jetstream, version 1: a WebSocket with one stream, whose options a message can
 * replace.
 *
 *     {"type":"options_update","payload":{"wantedCollections":["app.bsky.feed.post"]}}
 *
 * Messages of other types are ignored; a message that cannot be parsed ends the connection. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "gateway/dialects/basic_token.h"
#include "gateway/dialects/dialects.h"
#include "gateway/dialects/jetstream_form.h"
#include "gateway/dialects/jetstream_ids.h"
#include "gateway/dialects/jetstream_selection.h"
#include "gateway/http/websocket_reader.h"
#include "src/model/moment.h"

/* The token is in the header or the URL, or is a password, because some clients can only be
 * configured with a URL. */
static int find_token(const struct dialect_request *request, struct sl_slice *ret_jwt,
                      struct http_refusal *refusal)
{
    if (!request->http->authorization.data) {
        *ret_jwt = dialect_query_token(request->http);
        return 0;
    }
    if (!basic_token(request->http->authorization, request->room, ret_jwt) || ret_jwt->data)
        return 0;
    http_refuse(refusal, 401, "no_token", NULL, "the password must be a token");
    refusal->www_authenticate = "Bearer";
    return -EPROTO;
}

/* --- the request ----------------------------------------------------------------------------- */

/* Messages about users are independent of the collections. */
static struct sl_slice types_of(unsigned collections)
{
    bool has_follows = collections & 1u << JETSTREAM_FOLLOW;

    if (!(collections & ~(1u << JETSTREAM_FOLLOW)))
        return has_follows ? SL_SLICE("follow,unfollow,user") : SL_SLICE("user");
    return has_follows ? SL_SLICE("post,delete,follow,unfollow,user")
                       : SL_SLICE("post,delete,user");
}

/* A time in the future means now; a time before all events means the first one. */
static void ask_cursor(const struct jetstream_selection *selection,
                       const struct stream_times *times, struct dialect_stream *asked)
{
    uint64_t newest_ms = times->newest_ms > times->now_ms ? times->newest_ms : times->now_ms;
    uint64_t id = jetstream_id_at(selection->cursor_us, times->shards ? times->shards : 1);

    if (!selection->has_cursor || selection->cursor_us / 1000 > newest_ms)
        return;
    if (id < SL_MOMENT_ID_MIN)
        id = SL_MOMENT_ID_MIN;
    snprintf(asked->room, sizeof(asked->room), "%" PRIu64, id);
    dialect_ask(asked, "since", sl_slice_str(asked->room));
}

static int ask(struct jetstream_selection *selection, const struct stream_times *times,
               struct dialect_stream *asked)
{
    unsigned all = (1u << JETSTREAM_COLLECTIONS) - 1;
    unsigned collections = selection->has_collections ? selection->collections : all;

    *asked = (struct dialect_stream){
        .stream = selection->has_dids ? STREAM_FILTER : STREAM_FIREHOSE,
        .format = FORMAT_WEBSOCKET,
        .options = jetstream_options(collections, selection->max_bytes, times->shards),
        .authors_only = true,
        .again = DIALECT_CONTINUES,
        .first = selection->waits ? DIALECT_WAITS : DIALECT_BEGINS,
    };
    dialect_ask(asked, "types", types_of(collections));
    ask_cursor(selection, times, asked);
    if (!selection->has_dids)
        return 0;
    asked->memory = mem_strndup(selection->users.data, selection->users.size);
    if (!asked->memory)
        return -ENOMEM;
    dialect_ask(asked, "follow", sl_slice(asked->memory, selection->users.size));
    return 0;
}

static int open_stream(const struct dialect_request *request, struct dialect_stream *ret_asked,
                       struct http_refusal *refusal)
{
    struct jetstream_selection selection;
    int r = jetstream_selection_read_query(request->http->query, &selection, refusal);

    if (r == 0 && request->http->socket_encoding.data) /* another way to ask for compression */
        r = jetstream_selection_refuse_compression(refusal);
    if (r == 0)
        r = ask(&selection, &request->times, ret_asked);
    jetstream_selection_done(&selection);
    return r;
}

static int hear(struct sl_slice text, const struct stream_times *times,
                struct dialect_message *ret_message, struct http_refusal *refusal)
{
    struct jetstream_selection selection;
    bool is_known;
    int r = jetstream_selection_read_message(text, &selection, &is_known, refusal);

    *ret_message = (struct dialect_message){.act = DIALECT_IGNORE};
    if (r == 0 && is_known) {
        ret_message->act = DIALECT_OPEN;
        r = ask(&selection, times, &ret_message->asked);
    }
    jetstream_selection_done(&selection);
    return r;
}

/* --- refusals -------------------------------------------------------------------------------- */

static void refuse(const struct http_request *http, const struct http_refusal *refusal,
                   struct buffer *ret_body, struct http_answer *ret_answer)
{
    (void)http;
    if (refusal->status == 413)
        ret_answer->status = 400;
    ret_answer->content_type = "text/plain; charset=utf-8";
    buffer_append_str(ret_body, refusal->message);
    buffer_append_char(ret_body, '\n');
}

/* --- the table ------------------------------------------------------------------------------- */

static const struct dialect_route routes[] = {
    {.path = "/subscribe", .methods = DIALECT_GET, .allow = "GET, OPTIONS", .open = open_stream},
};

const struct dialect jetstream = {
    .id = DIALECT_JETSTREAM,
    .routes = routes,
    .route_count = sizeof(routes) / sizeof(routes[0]),
    .max_keepalive_ms = 30000,
    .find_token = find_token,
    .render = jetstream_render,
    .second = jetstream_second,
    .hear = hear,
    .refusal_close_code = WEBSOCKET_CLOSE_POLICY,
    .refuse = refuse,
};
