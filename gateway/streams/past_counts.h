/* gateway/streams/past_counts.h - inside streams: the counts of the past, as one answer.
 *
 * One who asks for them is a client of delivery like one that resumes, and reads the log by the
 * same path, within the same budget; but what it is sent is gathered, and is the answer when it is
 * complete. */
#pragma once

#include "gateway/streams/stream.h"

enum {
    PAST_COUNTS_BUCKETS = 2000,        /* in an answer */
    PAST_COUNTS_GROUPED_BUCKETS = 200, /* with groups */
    PAST_COUNTS_PER_SUBJECT = 2,       /* at a time, on a worker */
    PAST_COUNTS_MAX = 16               /* of all together: some 40 MiB each at the very worst */
};

/* Answers the request, at once or later, and ends `request`. 0; -EPROTO: *refusal is the answer;
 * -ENOMEM. */
int past_counts_begin(struct streams *streams, struct http_connection *connection,
                      struct stream_request *request, struct http_refusal *refusal);
