#include "gateway/metrics/stream_kind.h"

const char *stream_kind_name(enum stream_kind kind)
{
    static const char *const names[] = {"filter", "sample", "firehose", "home",
                                        "counts", "trends", "many",     "past_counts"};

    return names[kind];
}

const char *stream_format_name(enum stream_format format)
{
    static const char *const names[FORMAT_COUNT] = {"websocket", "ndjson", "delimited", "sse"};

    return names[format];
}
