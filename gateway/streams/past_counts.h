/* gateway/streams/past_counts.h - internal to streams: counts of the past, as one response.
 *
 * The request becomes a client of delivery that resumes: it reads the log in the same way and
 * within the same budget. What it is sent is collected, and becomes the response when it is
 * complete. */
#pragma once

#include "gateway/streams/stream.h"

enum {
    PAST_COUNTS_BUCKETS = 2000,        /* in a response */
    PAST_COUNTS_GROUPED_BUCKETS = 200, /* with groups */
    PAST_COUNTS_PER_SUBJECT = 2,       /* in progress on a worker */
    PAST_COUNTS_MAX = 16               /* of all subjects; each may use 40 MiB at worst */
};

/* Answers the request now or later, and frees `request`. 0; -EPROTO: respond with *refusal. */
int past_counts_begin(struct streams *streams, struct http_connection *connection,
                      struct stream_request *request, struct http_refusal *refusal);
