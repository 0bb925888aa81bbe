/* gateway/metrics/stream_kind.h - which streams there are and in which formats they come: what
 * streams are counted and listed by. The rows of metrics_table.def are in the same order. */
#pragma once

enum stream_kind { STREAM_FILTER, STREAM_SAMPLE, STREAM_FIREHOSE, STREAM_HOME, STREAM_MANY };

enum wire_format { WIRE_WEBSOCKET, WIRE_NDJSON, WIRE_DELIMITED, WIRE_SSE, WIRE_FORMAT_COUNT };

const char *stream_kind_name(enum stream_kind kind); /* "filter", ... "many" */
const char *wire_format_name(enum wire_format wire); /* "websocket", ... */
