/* dialect_websocket.c - a WebSocket in a dialect: messages of its client, and its end.
 *
 * The connection's own channel is like /v1/stream without filters, and is not in delivery. The
 * streams that the client asks for, in the request or in messages, are opened in addition to it. */
#include <errno.h>

#include "base/alloc.h"
#include "gateway/delivery/frame.h"
#include "gateway/front/dialect.h"
#include "gateway/streams/stream.h"

struct dialect_websocket {
    enum since_kind since; /* where streams begin after DIALECT_WAITS, until a message opens one;
                              else SINCE_NOW */
    struct sl_cursor since_cursor;
    char refusal_text[HTTP_MESSAGE_SIZE]; /* the reason for closing it; empty: none */
};

static const struct dialect *dialect_of(const struct websocket *websocket)
{
    return websocket->stream.own.request.dialect;
}

static void refuse(struct websocket *websocket, const struct http_refusal *refusal)
{
    const struct dialect *dialect = dialect_of(websocket);
    struct buffer text = BUFFER_INIT, frame = BUFFER_INIT;

    stream_audit_refused(&websocket->stream, refusal);
    if (dialect->print_refusal)
        dialect->print_refusal(refusal, &text);
    if (text.size > 0)
        frame_append_message(&frame, FORMAT_WEBSOCKET, "", buffer_slice(&text));
    frame.failed = frame.failed || text.failed;
    buffer_done(&text);
    stream_say_frame(&websocket->stream, &frame);
    if (!dialect->refusal_close_code)
        return;
    memcpy(websocket->dialect_state->refusal_text, refusal->message, sizeof(refusal->message));
    stream_evict(&websocket->stream, DISCONNECT_BAD_MESSAGE);
}

/* 0; -EPROTO: *refusal is set; -ENOMEM. */
static int open_asked(struct websocket *websocket, const struct dialect_stream *asked,
                      struct http_refusal *refusal)
{
    struct dialect_websocket *state = websocket->dialect_state;
    struct channel *channel;
    int r = opened_streams_open_asked(&websocket->stream, asked, &channel, refusal);

    if (r < 0 || !channel)
        return r;
    if (asked->again == DIALECT_CONTINUES && state->since != SINCE_NOW) {
        channel->request.since = state->since;
        channel->request.since_cursor = state->since_cursor;
    }
    state->since = SINCE_NOW;
    mem_free(channel_take_warnings(channel)); /* dialects have no message for warnings */
    stream_arm(&websocket->stream);
    return channel_resume(channel);
}

static int begin_to_wait(struct websocket *websocket, const struct dialect_stream *asked,
                         struct http_refusal *refusal)
{
    struct filter_share share = {0};
    struct stream_request request;
    int r = stream_check_asked(&websocket->stream, asked, &share, &request, refusal);

    if (r < 0)
        return r;
    websocket->dialect_state->since = request.since;
    websocket->dialect_state->since_cursor = request.since_cursor;
    stream_filters_settle(websocket->stream.streams, &request.token, 0, &share);
    stream_request_done(&request);
    return 0;
}

static void tell(struct websocket *websocket, int r, const struct http_refusal *refusal)
{
    if (r == -EPROTO)
        refuse(websocket, refusal);
    else if (r < 0)
        stream_evict(&websocket->stream, DISCONNECT_INTERNAL);
}

void dialect_websocket_begin(struct websocket *websocket, const struct dialect_stream *asked,
                             const struct http_refusal *refused)
{
    struct http_refusal refusal;
    int r = 0;

    websocket->dialect_state = mem_zalloc(sizeof(*websocket->dialect_state));
    if (!websocket->dialect_state) {
        stream_end(&websocket->stream, STREAM_BROKEN);
        return;
    }
    if (!stream_goes_on(&websocket->stream))
        return;
    if (refused) {
        refusal = *refused;
        r = -EPROTO;
    } else if (asked->first == DIALECT_BEGINS) {
        r = open_asked(websocket, asked, &refusal);
    } else if (asked->first == DIALECT_WAITS) {
        r = begin_to_wait(websocket, asked, &refusal);
    }
    tell(websocket, r, &refusal);
}

static int run_message(struct websocket *websocket, const struct dialect_message *message,
                       struct http_refusal *refusal)
{
    struct channel *channel;

    switch (message->act) {
    case DIALECT_IGNORE:
        return 0;
    case DIALECT_OPEN:
        return open_asked(websocket, &message->asked, refusal);
    case DIALECT_CLOSE:
        channel = opened_streams_find(&websocket->stream, message->asked.name);
        if (channel)
            opened_streams_close(channel);
        return 0;
    }
    return 0;
}

void dialect_websocket_message(struct websocket *websocket, struct sl_slice text)
{
    const struct stream_times times = stream_times_now(websocket->stream.streams);
    struct dialect_message message = {.act = DIALECT_IGNORE};
    struct http_refusal refusal;
    int r = dialect_of(websocket)->hear(text, &times, &message, &refusal);

    if (r == 0)
        r = run_message(websocket, &message, &refusal);
    dialect_stream_done(&message.asked);
    tell(websocket, r, &refusal);
}

struct dialect_close dialect_websocket_close(const struct websocket *websocket)
{
    const struct dialect *dialect = dialect_of(websocket);
    enum disconnect_reason why = websocket->stream.own.disconnect_reason;
    const struct disconnect_row *row = disconnect_row(why);

    if (websocket->dialect_state && websocket->dialect_state->refusal_text[0])
        return (struct dialect_close){dialect->refusal_close_code,
                                      websocket->dialect_state->refusal_text};
    if (dialect->close_of)
        return dialect->close_of(why);
    return (struct dialect_close){row->close_code, row->code};
}
