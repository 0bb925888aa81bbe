#include "gateway/metrics/stream_kind.h"

const char *stream_kind_name(enum stream_kind kind)
{
    static const char *const names[] = {"filter", "sample", "firehose", "home", "many"};

    return names[kind];
}

const char *wire_format_name(enum wire_format wire)
{
    static const char *const names[WIRE_FORMAT_COUNT] = {"websocket", "ndjson", "delimited", "sse"};

    return names[wire];
}
