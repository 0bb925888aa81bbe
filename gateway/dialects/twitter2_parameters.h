/* gateway/dialects/twitter2_parameters.h - converts the parameters of a stream of X's API 2 to
 * ours. */
#pragma once

#include "gateway/front/dialect.h"

/* A stream and the parameters that it accepts. */
struct twitter2_stream {
    const char *path;
    enum stream_kind stream;
    const char *percent;  /* of a sample; NULL: a parameter says */
    const char *language; /* NULL: any */
    unsigned partitions;  /* one of them must be requested; 0: none */
    bool takes_times;     /* start_time and end_time */
    bool is_compliance;   /* deletions, which have no fields to choose; else posts */
};

/* Reads all parameters of the query into *ret_asked, where the members common to all streams are
 * set already. Free it with dialect_stream_done() in every case. 0; -EPROTO: *refusal is set;
 * -ENOMEM. */
int twitter2_read_stream(const struct dialect_request *request,
                         const struct twitter2_stream *stream, struct dialect_stream *ret_asked,
                         struct http_refusal *refusal);
