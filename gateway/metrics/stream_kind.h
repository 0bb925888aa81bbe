/* gateway/metrics/stream_kind.h - the kinds and formats of streams, by which streams are counted
 * and listed. The rows of metrics_table.def are in the same order. */
#pragma once

enum stream_kind {
    STREAM_FILTER,
    STREAM_SAMPLE,
    STREAM_FIREHOSE,
    STREAM_HOME,
    STREAM_COUNTS,
    STREAM_TRENDS,
    STREAM_MANY,
    STREAM_PAST_COUNTS /* a response that ends, requested like a stream; in no metric */
};

enum stream_format { FORMAT_WEBSOCKET, FORMAT_NDJSON, FORMAT_DELIMITED, FORMAT_SSE, FORMAT_COUNT };

/* How a stream is compressed: by deflate, which is permessage-deflate on a WebSocket and gzip on
 * HTTP, or as zstd frames, each by itself or with a dictionary. */
enum stream_encoding {
    ENCODING_NONE,
    ENCODING_DEFLATE,
    ENCODING_ZSTD,
    ENCODING_ZSTD_DICTIONARY,
    ENCODING_COUNT
};

const char *stream_kind_name(enum stream_kind kind);       /* "filter", ... */
const char *stream_format_name(enum stream_format format); /* "websocket", ... */
