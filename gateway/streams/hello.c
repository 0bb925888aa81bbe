/* hello.c - the first message of a stream that asked for it: how the server has understood the
 * request.
 *
 * A filter that matches nothing looks like a filter that means something else than its author
 * thinks, so the message describes it in words. They are made once for a stream, from the compiled
 * filter, and their length is limited. */
#include <inttypes.h>

#include "base/json_text.h"
#include "filters/filter_describe.h"
#include "gateway/front/event_fields.h"
#include "gateway/streams/stream.h"

enum { WORDS_MAX_BYTES = 1000 };

void stream_describe(const struct stream_request *request, size_t max_bytes, struct buffer *words)
{
    if (stream_request_takes_rules(request)) {
        buffer_append_str(words, "nothing yet: filters are given in messages");
        return;
    }
    switch (request->stream) {
    case STREAM_FILTER:
    case STREAM_SAMPLE:
    case STREAM_FIREHOSE:
    case STREAM_COUNTS:
    case STREAM_TRENDS:
    case STREAM_PAST_COUNTS:
        sl_filter_describe(request->filter, max_bytes, words);
        break;
    case STREAM_HOME:
        sl_filter_describe_types(request->types, words);
        buffer_append_format(words, " of user %s and of the users it follows",
                             request->token.subject);
        break;
    case STREAM_MANY:
        break;
    }
}

void hello_print(const struct channel *channel, const struct sl_cursor *cursor,
                 struct buffer *ret_json)
{
    const struct stream_request *request = &channel->request;
    struct buffer words = BUFFER_INIT, json = BUFFER_INIT;
    char text[SL_CURSOR_TEXT_SIZE];

    stream_describe(request, WORDS_MAX_BYTES, &words);
    buffer_append_format(&json, "{\"type\":\"hello\",\"stream\":\"%s\",\"filter\":",
                         stream_kind_name(request->stream));
    buffer_append_json_string(&json, buffer_slice(&words));
    if (request->fields != EVENT_FIELDS_FULL) {
        buffer_append_str(&json, ",\"fields\":\"");
        event_fields_print(request->fields, &json);
        buffer_append_char(&json, '"');
    }
    buffer_append_format(
        &json,
        ",\"connection\":\"%s\",\"cursor\":\"%s\",\"server\":\"sluiced " SLUICE_VERSION "\"}",
        channel->stream->connection_id, sl_cursor_print(cursor, text));
    json_append_in_one_line(ret_json, buffer_slice(&json));
    ret_json->failed = ret_json->failed || words.failed || json.failed;
    buffer_done(&words);
    buffer_done(&json);
}
