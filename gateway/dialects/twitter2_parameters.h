/* gateway/dialects/twitter2_parameters.h - the parameters of a stream of X's API 2, in ours. */
#pragma once

#include "gateway/front/dialect.h"

/* What a stream takes, and is. */
struct twitter2_stream {
    const char *path;
    enum stream_kind stream;
    const char *percent;  /* of a sample; NULL: as ours */
    const char *language; /* NULL: any */
    unsigned partitions;  /* one of which must be asked for; 0: there are none */
    bool takes_times;     /* start_time, end_time */
    bool is_compliance;   /* deletions, which have no fields to choose from; else posts */
};

/* Reads all parameters of the query; *ret_asked has what all streams have, and is to be ended with
 * dialect_stream_done() in any case. 0; -EPROTO; -ENOMEM. */
int twitter2_read_stream(const struct dialect_request *request,
                         const struct twitter2_stream *stream, struct dialect_stream *ret_asked,
                         struct http_refusal *refusal);
