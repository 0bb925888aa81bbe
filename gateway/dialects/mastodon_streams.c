/* mastodon_streams.c - a table of the streams, and how a tag becomes a filter.
 *
 * As in Mastodon, only letters, digits and `_` of a tag are used. The result becomes `track=#tag`
 * if it is one hashtag of at most TRACK_MAX_CHARACTERS; otherwise the stream is silent. Tags of
 * more than MASTODON_TAG_MAX_BYTES are silent, too. */
#include "gateway/dialects/mastodon_streams.h"

#include <errno.h>
#include <string.h>

#include "gateway/dialects/mastodon_form.h"
#include "gateway/dialects/text_marks.h"

enum { TRACK_MAX_CHARACTERS = 60 }; /* of a phrase, see docs/filters.md */

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

/* Sets a filter that costs nothing, and an option that suppresses all events. */
static void be_silent(struct dialect_stream *asked)
{
    asked->options |= MASTODON_SILENT;
    dialect_ask(asked, "follow", SL_SLICE("0"));
}

/* true: the whole text is one hashtag, for which a filter can search. */
static bool is_hashtag(struct sl_slice text)
{
    struct text_marks marks = {.text = text};
    struct text_mark mark;
    size_t characters = 0;

    for (size_t i = 0; i < text.size; i++)
        characters += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return characters <= TRACK_MAX_CHARACTERS && text_marks_next(&marks, &mark) &&
           mark.kind == TEXT_MARK_HASHTAG && mark.from == 0 && mark.to == text.size;
}

/* As in Mastodon, characters that cannot be part of a hashtag are removed. */
static int ask_tag(struct sl_slice tag, struct dialect_stream *asked, char *room,
                   struct http_refusal *refusal)
{
    struct buffer text = BUFFER_INIT;
    int r;

    if (tag.size == 0)
        return http_refuse(refusal, 400, "no_tag", "tag", "Missing tag name parameter");
    buffer_append_char(&text, '#');
    if (tag.size <= MASTODON_TAG_MAX_BYTES)
        text_marks_append_letters(tag, &text);
    r = text.failed ? -ENOMEM : 0;
    if (r == 0 && is_hashtag(buffer_slice(&text)))
        dialect_ask(asked, "track", sl_slice(memcpy(room, text.data, text.size), text.size));
    else if (r == 0)
        be_silent(asked);
    buffer_done(&text);
    return r;
}

static int refuse_name(const struct mastodon_selection *selection, struct http_refusal *refusal)
{
    if (!sl_slice_is(selection->name, "list"))
        return http_refuse(refusal, 400, "unknown_stream", "stream", "Unknown stream type");
    if (selection->list.size == 0)
        return http_refuse(refusal, 400, "no_list", "list", "Missing list name parameter");
    return http_refuse(refusal, 404, "no_such_list", "list", "there are no lists here");
}

int mastodon_ask(const struct mastodon_selection *selection, struct dialect_stream *asked,
                 char *room, struct http_refusal *refusal)
{
    const struct row *row = rows, *end = rows + sizeof(rows) / sizeof(rows[0]);

    while (row < end && !sl_slice_is(selection->name, row->name))
        row++;
    if (row == end)
        return refuse_name(selection, refusal);
    asked->stream = row->stream;
    asked->options |= row->options;
    if (row->has_tag)
        return ask_tag(selection->tag, asked, room, refusal);
    if (row->options & MASTODON_SILENT)
        be_silent(asked);
    return 0;
}

struct mastodon_error mastodon_error_of(const struct http_refusal *refusal)
{
    if (strcmp(refusal->param, "track") == 0)
        return (struct mastodon_error){400, SL_SLICE("tag is not a hashtag")};
    return (struct mastodon_error){refusal->status, sl_slice_str(refusal->message)};
}
