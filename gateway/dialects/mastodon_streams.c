#include "gateway/dialects/mastodon_streams.h"

#include <stdio.h>

#include "gateway/dialects/mastodon_form.h"

static const struct row {
    const char *name;
    enum stream_kind stream;
    unsigned options;
    bool has_tag;
} rows[] = {
    {"public", STREAM_FIREHOSE, 0, false},
    {"public:local", STREAM_FIREHOSE, 0, false},
    {"public:remote", STREAM_FILTER, MASTODON_SILENT, false},
    {"public:media", STREAM_FIREHOSE, MASTODON_MEDIA_ONLY, false},
    {"public:local:media", STREAM_FIREHOSE, MASTODON_MEDIA_ONLY, false},
    {"public:remote:media", STREAM_FILTER, MASTODON_SILENT, false},
    {"hashtag", STREAM_FILTER, 0, true},
    {"hashtag:local", STREAM_FILTER, 0, true},
    {"user", STREAM_HOME, 0, false},
    {"user:notification", STREAM_FILTER, MASTODON_SILENT, false},
    {"direct", STREAM_HOME, MASTODON_DIRECT, false},
};

static int ask_tag(struct sl_slice tag, struct dialect_stream *asked, char *room,
                   struct http_refusal *refusal)
{
    int size;

    if (sl_slice_starts_with(tag, SL_SLICE("#")))
        tag = sl_slice_from(tag, 1);
    if (tag.size == 0)
        return http_refuse(refusal, 400, "no_tag", "tag", "Missing tag name parameter");
    if (tag.size > MASTODON_TAG_MAX_BYTES || memchr(tag.data, ',', tag.size) ||
        memchr(tag.data, ' ', tag.size))
        return http_refuse(refusal, 400, "bad_tag", "tag", "tag is one hashtag");
    size = snprintf(room, MASTODON_ROOM_SIZE, "#%.*s", SL_SLICE_ARG(tag));
    dialect_ask(asked, "track", sl_slice(room, (size_t)size));
    return 0;
}

static int refuse_name(const struct mastodon_wish *wish, struct http_refusal *refusal)
{
    if (!sl_slice_is(wish->name, "list"))
        return http_refuse(refusal, 400, "unknown_stream", "stream", "Unknown stream type");
    if (wish->list.size == 0)
        return http_refuse(refusal, 400, "no_list", "list", "Missing list name parameter");
    return http_refuse(refusal, 404, "no_such_list", "list", "there are no lists here");
}

int mastodon_ask(const struct mastodon_wish *wish, struct dialect_stream *asked, char *room,
                 struct http_refusal *refusal)
{
    const struct row *row = rows, *end = rows + sizeof(rows) / sizeof(rows[0]);

    while (row < end && !sl_slice_is(wish->name, row->name))
        row++;
    if (row == end)
        return refuse_name(wish, refusal);
    asked->stream = row->stream;
    asked->options |= row->options;
    if (row->has_tag)
        return ask_tag(wish->tag, asked, room, refusal);
    if (row->options & MASTODON_SILENT)
        dialect_ask(asked, "follow", SL_SLICE("0")); /* a filter that costs nothing */
    return 0;
}
