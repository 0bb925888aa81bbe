/* opened_streams.c - streams that the client of /v1/stream opens by their paths, on its connection.
 *
 * Each is checked as if it had been asked for by itself, and is a channel with a name. What it is
 * sent ends with that name, so that all who use the same names share lanes and frames. */
#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/rule_set.h"
#include "gateway/streams/stream.h"

static size_t count_opened(const struct stream *stream)
{
    return stream->channels.count - 1; /* one is the stream's own */
}

size_t opened_streams_and_rules(const struct stream *stream)
{
    return count_opened(stream) + rule_set_count(stream->own.rules);
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

/* What has been gathered for it goes out. */
void opened_streams_close(struct channel *channel)
{
    deliver_client_flush(&channel->client);
    stream_close_channel(channel, "client");
}

/* NULL: out of memory. */
static struct channel *channel_new(struct stream *stream, struct sl_slice name,
                                   struct stream_request *request, struct filter_share *share)
{
    struct channel *channel = mem_zalloc(sizeof(*channel));

    if (!channel) {
        stream_filters_settle(stream->streams, &request->token, 0, share);
        stream_request_done(request);
        return NULL;
    }
    channel_init(channel, stream, request, share);
    channel->client.dictionary = stream->own.client.dictionary;
    if (channel_set_name(channel, name) < 0) {
        stream_close_channel(channel, "internal");
        return NULL;
    }
    return channel;
}

int opened_streams_open(struct stream *stream, struct sl_slice name, struct sl_slice path,
                        struct channel **ret_channel, struct http_refusal *refusal)
{
    struct channel *replaced = opened_streams_find(stream, name);
    struct filter_share share = replaced ? replaced->filters : (struct filter_share){0};
    struct stream_request request;
    int r = check_room(stream, replaced, refusal);

    if (r == 0)
        r = stream_check_opened(stream, path, &share, &request, refusal);
    if (r < 0)
        return r;
    if (replaced) {
        replaced->filters = (struct filter_share){0}; /* `share` has them */
        opened_streams_close(replaced);
    }
    *ret_channel = channel_new(stream, name, &request, &share);
    if (!*ret_channel)
        return -ENOMEM;
    stream_audit_open(*ret_channel);
    return channel_join(*ret_channel);
}
