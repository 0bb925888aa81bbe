/* opened_streams.c - streams that a client opens on its connection: on /v1/stream by their paths,
 * in dialects by messages of the dialect.
 *
 * Each is checked like a separate request, and is a channel with a name. Its messages end with that
 * name, or with what the dialect defines, so all channels with the same name share lanes and
 * frames. */
#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/rule_set.h"
#include "gateway/streams/stream.h"

static size_t count_opened(const struct stream *stream)
{
    return stream->channels.count - 1; /* without the stream's own */
}

size_t opened_streams_and_rules(const struct stream *stream)
{
    return count_opened(stream) + (stream->own.rules ? rule_set_count(stream->own.rules) : 0);
}

struct channel *opened_streams_find(const struct stream *stream, struct sl_slice name)
{
    LIST_EACH(&stream->channels, node)
    {
        struct channel *channel = LIST_OWNER(node, struct channel, node);

        if (channel_is_opened(channel) && sl_slice_equal(channel_name(channel), name))
            return channel;
    }
    return NULL;
}

static int check_room(const struct stream *stream, const struct channel *replaced,
                      struct http_refusal *refusal)
{
    if (stream->own.request.until)
        return http_refuse(refusal, 400, "bad_until", "until",
                           "a connection that ends at its until opens no streams: each may have "
                           "one of its own");
    if (replaced)
        return 0;
    if (count_opened(stream) >= OPENED_STREAMS_MAX)
        return http_refuse(refusal, 413, "too_many_streams", NULL,
                           "a connection has at most %d open streams", OPENED_STREAMS_MAX);
    if (opened_streams_and_rules(stream) >= stream->own.request.token.limits.rules)
        return http_refuse(refusal, 413, "too_many_rules", "rules",
                           "too many rules for this token");
    return 0;
}

/* What is buffered for it is sent. */
void opened_streams_close(struct channel *channel)
{
    deliver_client_flush(&channel->client);
    stream_close_channel(channel, "client");
}

/* A permitted stream and what it uses. */
struct opening {
    struct sl_slice name, tail;
    struct stream_request request;
    struct filter_share share;
};

/* NULL: out of memory. */
static struct channel *channel_new(struct stream *stream, const struct opening *opening)
{
    struct filter_share share = opening->share;
    struct stream_request request = opening->request;
    struct channel *channel = mem_zalloc(sizeof(*channel));

    if (!channel) {
        stream_filters_settle(stream->streams, &request.token, 0, &share);
        stream_request_done(&request);
        return NULL;
    }
    channel_init(channel, stream, &request, &share);
    channel->client.dictionary = stream->own.client.dictionary;
    if (channel_set_name(channel, opening->name, opening->tail) < 0) {
        stream_close_channel(channel, "internal");
        return NULL;
    }
    return channel;
}

/* `replaced` NULL: none. */
static int put(struct stream *stream, struct channel *replaced, const struct opening *opening,
               struct channel **ret_channel)
{
    if (replaced) {
        replaced->filters = (struct filter_share){0}; /* it is in opening->share now */
        opened_streams_close(replaced);
    }
    *ret_channel = channel_new(stream, opening);
    if (!*ret_channel)
        return -ENOMEM;
    stream_audit_open(*ret_channel);
    return channel_join(*ret_channel);
}

int opened_streams_open(struct stream *stream, struct sl_slice name, struct sl_slice path,
                        struct channel **ret_channel, struct http_refusal *refusal)
{
    struct channel *replaced = opened_streams_find(stream, name);
    struct opening opening = {.name = name};
    struct buffer tail = BUFFER_INIT;
    int r = check_room(stream, replaced, refusal);

    if (replaced)
        opening.share = replaced->filters;
    if (r == 0)
        r = stream_check_opened(stream, path, &opening.share, &opening.request, refusal);
    if (r < 0)
        return r;
    buffer_append_str(&tail, ",\"stream\":\"");
    buffer_append_slice(&tail, name); /* its characters need no escapes */
    buffer_append_char(&tail, '"');
    opening.tail = buffer_slice(&tail);
    r = tail.failed ? -ENOMEM : put(stream, replaced, &opening, ret_channel);
    buffer_done(&tail);
    return r;
}

/* A client that has been sent everything continues with the next event. */
static void go_on(struct channel *channel, struct stream_request *request)
{
    deliver_client_flush(&channel->client);
    if (!channel->client.catcher && deliver_client_is_served(&channel->client)) {
        request->since = SINCE_NOW;
    } else {
        request->since = SINCE_CURSOR;
        request->since_cursor = channel_cursor(channel);
    }
}

int opened_streams_open_asked(struct stream *stream, const struct dialect_stream *asked,
                              struct channel **ret_channel, struct http_refusal *refusal)
{
    struct channel *replaced = opened_streams_find(stream, asked->name);
    struct opening opening = {.name = asked->name, .tail = asked->tail};
    int r;

    *ret_channel = NULL;
    if (replaced && asked->again == DIALECT_KEEPS)
        return 0;
    if (replaced)
        opening.share = replaced->filters;
    r = check_room(stream, replaced, refusal);
    if (r == 0)
        r = stream_check_asked(stream, asked, &opening.share, &opening.request, refusal);
    if (r < 0)
        return r;
    if (replaced && asked->again == DIALECT_CONTINUES)
        go_on(replaced, &opening.request);
    return put(stream, replaced, &opening, ret_channel);
}
