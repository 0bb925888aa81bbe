/* gateway/front/pick_question.h - how many posts of a bucket are sent, and which.
 *
 * max_rate=N: at most N posts a second. A bucket is a second, or 1/N seconds (rounded up to a
 * millisecond) if N is below 1, and begins like a bucket of counts (count_question.h). max=N: at
 * most N posts of everything between `since` and `until`, which is one bucket. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/http/http.h"

enum pick {
    PICK_EVEN,    /* those with the lowest hashes, as for `sample` */
    PICK_NEWEST,  /* those with the highest ids */
    PICK_FIRST,   /* those with the lowest ids, each as soon as it passes */
    PICK_BY_USER, /* the newest of each author, and of these the newest */
    PICK_BY_CELL  /* the same for each cell of the map; posts without a point are a cell, too */
};

struct pick_question {
    uint32_t posts; /* maximum for a bucket; 0: all, as they pass */
    enum pick pick;
    uint32_t cell_millidegrees; /* side length of a cell; 0: not by cell */
    uint64_t behind; /* there is one bucket, of posts with ids after this one; 0: there are many */
};

enum { PICK_POSTS_MAX = 1000 };

/* Reads on_slow=sample: a client that does not keep up is sent a part of its posts. Absent: without
 * data, which means no. Not allowed if posts are picked already. 0; -EPROTO: *refusal. */
int on_slow_read(struct sl_slice text, const struct pick_question *question, bool *ret_samples,
                 struct http_refusal *refusal);

/* As received; absent: without data. */
struct pick_values {
    struct sl_slice max_rate, max, pick, latest_by, cell_degrees;
};

/* `since`, `until`: the range of ids of the stream; 0: not given. 0: *ret_bucket_ms is 0 if all
 * posts are sent; -EPROTO: *refusal. */
int pick_question_read(const struct pick_values *values, uint64_t since, uint64_t until,
                       struct pick_question *ret_question, uint64_t *ret_bucket_ms,
                       struct http_refusal *refusal);
